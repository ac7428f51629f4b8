"""`vnuma serve`: the store in a browser, read-only."""
