"""Words and numbers for people: texts, percentages, origins, and bounded input. Pure."""
