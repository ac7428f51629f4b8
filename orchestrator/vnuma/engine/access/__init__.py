"""How VMs, their vCenter and SQL Server are reached: inventory, secrets, connections."""
