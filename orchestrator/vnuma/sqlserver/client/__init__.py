"""Talking to SQL Server: driver, connection, deadline, statements and their times."""
