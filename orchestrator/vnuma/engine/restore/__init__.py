"""Restore what a run changed, and prove it by reading it back."""
