"""A run in one file: raw data, figures, and what is needed to repeat it."""
