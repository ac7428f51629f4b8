"""Short remote procedure calls from many connections at once: what the network costs SQL Server."""
