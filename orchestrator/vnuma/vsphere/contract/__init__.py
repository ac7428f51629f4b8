"""What vnuma believes of vSphere, each belief a question that any vCenter or ESXi host can be asked."""
