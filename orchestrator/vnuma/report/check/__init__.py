"""A design check as table, page, JSON, CSV, SARIF and JUnit."""
