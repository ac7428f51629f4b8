# Fits one host NUMA node by vCPUs, and by memory with the VM's overhead: 1/128 of its memory.
include "estate";
[placed
  | select(.host.release >= [6, 5] and .vcpus <= .host.node_cores and .memory_mb * 129 / 128 <= .host.node_mb)
  | .id]
