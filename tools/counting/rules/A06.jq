# Pinned to both threads of a core, 2k and 2k+1.
include "estate";
[placed
  | select(.host.hyper_threading)
  | select((.pinned | map(. / 2 | floor) | unique | length) < (.pinned | length))
  | .id]
