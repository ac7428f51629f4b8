"""Simulations behind docs/reference/calibration.md: those of `vnuma calibrate`, and harder cases."""
