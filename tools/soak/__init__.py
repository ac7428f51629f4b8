"""Killing a run at seeded points, and looking each time whether VM and samples survived.

`make soak MINUTES=5 SEED=1` does it on a fast lab and ends with 1 if anything was lost or left altered.
"""
