# Less than all memory is reserved.
include "estate";
[.[] | select((.locked | not) and .reserved_mb < .memory_mb) | .id]
