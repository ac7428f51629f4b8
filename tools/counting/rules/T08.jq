# vCPUs that the nodes needed do not divide.
include "estate";
[placed | select(nodes_needed > 1 and .vcpus % nodes_needed != 0) | .id]
