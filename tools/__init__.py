"""What developers run: set-up, benchmarks, soak, counts."""
