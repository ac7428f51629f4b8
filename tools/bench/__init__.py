"""Machine-dependent figures with their targets; no test fails for being slow.

`make bench` measures all and writes them into docs/benchmarks.md.
"""
