# CPU hot-add on ESXi 6.5 to 7.0 hides vNUMA.
include "estate";
[placed | select(.hot_add and .host.release >= [6, 5] and .host.release < [8, 0]) | .id]
