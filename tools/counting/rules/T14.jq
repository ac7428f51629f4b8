# What the first power-on stored gives other nodes than a fresh sizing.
include "estate";
[placed
  | select(.host.release >= [6, 5] and .stored_node)
  | select(guest_nodes != (.stored_node = null | guest_nodes))
  | .id]
