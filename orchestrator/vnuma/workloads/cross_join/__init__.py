"""The paper's workload: TOP (n) of two tables on either side of a cross join."""
