"""Short remote procedure calls from many connections: the network's cost to SQL Server."""
