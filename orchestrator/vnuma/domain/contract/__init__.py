"""Assumptions about servers, and the results of checking them."""
