"""Developer tools: set-up, benchmarks, soak, counts."""
