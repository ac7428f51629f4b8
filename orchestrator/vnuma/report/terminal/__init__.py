"""A run as text for a terminal."""
