"""Reporting queries in concurrent streams over pages of one memory node, from that node or another."""
