"""The engine makes every decision: claims, attempts, leases, restores, recovery, supervision."""
