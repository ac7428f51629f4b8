"""Inventory, secrets and connections: how to reach VMs, their vCenter and SQL Server."""
