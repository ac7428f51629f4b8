"""Calibrate the comparison rule on thousands of simulated studies with known truths."""
