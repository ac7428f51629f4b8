"""The adapter for SQL Server: drivers, connections, timing, the dataset and what the guest shows."""
