# Sockets that are not the vNUMA nodes: one for each vCPU, or fewer than the host nodes that vCPUs and memory need.
include "estate";
[placed
  | select(.vcpus > 1 and (.automatic | not) and .sockets != guest_nodes)
  | ([nodes_needed, (.memory_mb / (.host.node_mb * 128 / 129 | floor) | ceil)] | max) as $needed
  | select(.sockets == .vcpus or .sockets < ([$needed, .host.nodes] | min))
  | .id]
