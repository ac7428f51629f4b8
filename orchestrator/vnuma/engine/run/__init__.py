"""A run from start to end: supervision, the next cell, stopping, resuming, progress."""
