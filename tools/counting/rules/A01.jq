# A pinned VM in a cluster with DRS.
include "estate";
[placed | select((.pinned | length) > 0 and .cluster.drs) | .id]
