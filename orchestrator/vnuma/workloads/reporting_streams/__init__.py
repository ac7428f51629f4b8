"""Reporting queries in concurrent streams over pages of one memory node, from there or from another."""
