"""A run as tables: on the screen, as CSV, LaTeX and Markdown."""
