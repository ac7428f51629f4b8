"""The engine: claims, attempts, leases, restoring, recovering, supervising. Every decision is here."""
