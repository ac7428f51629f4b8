"""Kill a run at seeded points and check each time that VM and samples survived.

`make soak MINUTES=5 SEED=1` does it on a fast lab and exits with 1 if anything was lost or left altered.
"""
