"""The store of every run, VM, cell, attempt and sample, in SQLite or PostgreSQL.

`open.open_store` gives a `Store`, whose `read()` and `write()` are the only units of work. The query modules
(`runs`, `facts`, `vms`, `leases`, `cells`, `attempts`, `samples`) take such a unit's connection and return
the frozen values of `rows`.
"""
