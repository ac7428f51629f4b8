"""Facts, settings and changes of a VM, its host, its guest and its SQL Server."""
