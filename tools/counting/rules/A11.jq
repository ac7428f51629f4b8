# Somebody will have to clear an affinity.
include "estate";
[.[] | select(.pinned != []) | .id]
