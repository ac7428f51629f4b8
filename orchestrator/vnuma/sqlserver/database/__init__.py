"""The product's own database: its tables, procedures and data."""
