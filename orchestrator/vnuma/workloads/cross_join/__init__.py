"""The paper's workload: a cross join of TOP (n) rows of two tables."""
