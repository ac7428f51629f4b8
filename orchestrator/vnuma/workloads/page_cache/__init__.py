"""A file in the page cache, read from a chosen NUMA node (Closson 2009)."""
