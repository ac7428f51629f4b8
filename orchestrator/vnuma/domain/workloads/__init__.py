"""The workload section of a study file: each workload's settings, and what its figures mean."""
