# A VM pinned to CPUs or to memory.
include "estate";
[.[] | select((.pinned + .memory_pinned | length) > 0) | .id]
