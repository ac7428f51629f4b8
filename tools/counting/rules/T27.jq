# Fewer vNUMA nodes than the vCPUs need.
include "estate";
[placed
  | select(.host.release >= [6, 5])
  | ([nodes_needed, .host.nodes] | min) as $needed
  | select($needed > 1 and guest_nodes < $needed)
  | .id]
