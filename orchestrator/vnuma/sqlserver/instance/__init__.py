"""A SQL Server instance: its settings, its topology, its counters, and when it is ready."""
