"""A run and a calibration as text for a terminal."""
