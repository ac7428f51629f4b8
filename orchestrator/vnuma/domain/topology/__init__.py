"""Which vNUMA topology ESXi gives a VM, what guest and SQL Server see of it, and how sure that is."""
