"""The design rules, a family a file, and the catalogue of them all."""
