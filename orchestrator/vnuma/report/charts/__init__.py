"""A run as charts, interactive and as pictures."""
