"""What vnuma believes of SQL Server, each belief a question that any server can be asked."""
