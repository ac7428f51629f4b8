# Clusters, of those with VMs, whose hosts differ by their NUMA nodes.
include "estate";
[placed
  | .cluster // empty
  | select([.hosts[] | [.nodes, .node_cores, .node_mb]] | unique | length > 1)
  | .id] | unique
