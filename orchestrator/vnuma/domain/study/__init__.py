"""A study file: read, validated as a whole, and the design that it declares."""
