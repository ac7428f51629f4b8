"""Figures that depend on the machine, beside what was aimed at: no test fails for being slow.

`make bench` measures them all and writes them into docs/benchmarks.md.
"""
