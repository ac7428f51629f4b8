"""A run as one JSON document, with its schema."""
