"""Machines measured as they are: no vCenter, no power-cycle, Ansible's own connection for everything."""
