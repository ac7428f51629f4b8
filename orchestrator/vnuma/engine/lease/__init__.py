"""One VM leased to one run: its baseline, its attempt, its lock, and the journal of changes."""
