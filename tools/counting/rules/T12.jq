# CPU hot-add on ESXi 8 and later, and vNUMA not exposed with it.
include "estate";
[placed | select(.hot_add and .host.release >= [8, 0] and (.exposed | not)) | .id]
