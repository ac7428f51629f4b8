"""Inserts beside the log writer and away from it: the price of the log cache's spinlock over NUMA nodes."""
