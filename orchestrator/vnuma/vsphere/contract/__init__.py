"""vnuma's assumptions about vSphere, each checked on a vCenter or ESXi host."""
