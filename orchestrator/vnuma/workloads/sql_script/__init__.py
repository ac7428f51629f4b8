"""The user's own T-SQL, timed and checked as the other workloads are."""
