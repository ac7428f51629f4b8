"""A study file: read, validated whole, and the design that it declares."""
