"""The workload section of a study file: what each workload can be told, and what its figures mean."""
