"""The adapter for SQL Server: drivers, connections, timing, the dataset and the guest's topology."""
