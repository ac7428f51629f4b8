"""A run as every report sees it: figures, limits, warnings and their texts."""
