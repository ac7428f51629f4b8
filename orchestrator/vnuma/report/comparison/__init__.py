"""Compare two runs: what must match, what differs, what changed, and a condition for pipelines."""
