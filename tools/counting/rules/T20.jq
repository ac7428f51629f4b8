# Hosts with VMs and other NUMA nodes than sockets.
include "estate";
[placed | .host | select(.nodes != 1 and .nodes != .packages) | .id] | unique
