# Pinned while another VM runs on the host.
include "estate";
[placed
  | select((.pinned | length) > 0 and .latency != "high" and .beside and (.beside | length) > 0)
  | .id]
