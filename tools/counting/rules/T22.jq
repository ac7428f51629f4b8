# Hosts with VMs and several sockets, but one NUMA node.
include "estate";
[placed | .host | select(.nodes == 1 and .packages > 1) | .id] | unique
