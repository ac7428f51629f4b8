"""A design check as table, page, JSON, CSV and SARIF."""
