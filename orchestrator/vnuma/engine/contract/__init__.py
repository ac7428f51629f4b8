"""What vnuma believes of SQL Server and vSphere, asked of real ones."""
