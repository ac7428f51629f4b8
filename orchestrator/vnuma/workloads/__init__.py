"""Workloads: pure. Each turns a size, a form and its options into the statements to run."""
