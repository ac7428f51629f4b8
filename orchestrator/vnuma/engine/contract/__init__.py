"""vnuma's assumptions about SQL Server and vSphere, checked against real servers."""
