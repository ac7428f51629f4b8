"""What was read of a VM, its host, its guest and its SQL Server: facts, settings and changes."""
