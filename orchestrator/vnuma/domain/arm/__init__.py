"""One configuration under test: its fields, the settings that they become, and whether a boot counts."""
