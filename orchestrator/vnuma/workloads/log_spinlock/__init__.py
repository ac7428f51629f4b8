"""Inserts on the log writer's node or another: the cost of the log cache's spinlock across NUMA nodes."""
