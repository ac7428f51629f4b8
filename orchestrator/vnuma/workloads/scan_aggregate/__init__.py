"""Scans of more data than fits the cache: the memory distance that the paper's joins cannot show."""
