"""Simulations behind docs/reference/calibration.md: the standard truths, and harder cases."""
