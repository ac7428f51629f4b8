"""A SQL Server instance: its settings, topology, counters and readiness."""
