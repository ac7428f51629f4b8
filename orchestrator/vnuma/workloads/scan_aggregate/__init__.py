"""Scans over more data than a cache holds: the distance to memory, which the paper's joins cannot show."""
