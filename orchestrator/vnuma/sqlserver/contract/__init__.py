"""vnuma's assumptions about SQL Server, each checked on a server."""
