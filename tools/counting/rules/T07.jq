# Fits one host NUMA node by vCPUs and by memory.
include "estate";
[placed
  | select(.host.release >= [6, 5] and .vcpus <= .host.node_cores and .memory_mb <= .host.node_mb)
  | .id]
