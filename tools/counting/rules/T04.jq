# Several sockets of several cores that the guest's nodes, also those that hot-add hides, do not follow.
include "estate";
[placed
  | select(.host.release >= [6, 5] and .vcpus >= 9 and .sockets > 1 and .per_socket > 1)
  | select(sized_nodes != .sockets)
  | .id]
