"""The self-contained HTML pages."""
