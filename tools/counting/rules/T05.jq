# A wide VM whose sockets do not fill a node's share of the vCPUs.
include "estate";
[placed
  | select(.host.release >= [6, 5] and nodes_needed > 1 and .per_socket > 1 and (.automatic | not))
  | select((.vcpus / nodes_needed | ceil) % .per_socket != 0 or .vcpus % nodes_needed != 0)
  | .id]
