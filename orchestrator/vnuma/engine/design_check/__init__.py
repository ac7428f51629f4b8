"""The design rules over VMs of a vCenter, a file or an inventory."""
