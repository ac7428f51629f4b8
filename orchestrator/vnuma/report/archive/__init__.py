"""A run in one file: the raw data, the figures made of them, and what is needed to do it again."""
