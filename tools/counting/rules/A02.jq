# A pinned VM.
include "estate";
[.[] | select((.pinned | length) > 0) | .id]
