"""A file in the page cache, read back from the NUMA node of choice (Closson 2009)."""
