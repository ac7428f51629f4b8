"""A run as every report sees it: figures, limits, warnings and the words for them."""
