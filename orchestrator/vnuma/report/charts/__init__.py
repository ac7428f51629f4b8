"""A run's charts, for the page and as pictures."""
