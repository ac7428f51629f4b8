# Several sockets of several cores that the guest's nodes do not follow.
include "estate";
[placed
  | select(.host.release >= [6, 5] and .vcpus >= 9 and .sockets > 1 and .per_socket > 1)
  | select(guest_nodes != .sockets)
  | .id]
