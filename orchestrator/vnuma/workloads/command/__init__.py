"""A program that prints a figure: any benchmark, in the guest or on a client host."""
