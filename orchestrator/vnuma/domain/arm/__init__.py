"""One configuration under test: its fields, the resulting settings, and whether a boot is valid."""
