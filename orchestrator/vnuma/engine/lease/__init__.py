"""One VM held by one run: its baseline, its attempt, its lock, and the journal of changes."""
