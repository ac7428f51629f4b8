"""The design rules, one file per family, and their catalogue."""
