"""Workloads: what is run on a boot, prepared, verified and read. The engine decides when, and stores it."""
