"""The store: every run, VM, cell, attempt and sample, in SQLite or PostgreSQL.

`open.open_store` gives a `Store`; its `read()` and `write()` are the only units of work. The query
modules (`runs`, `facts`, `vms`, `leases`, `cells`, `attempts`, `samples`) take the connection that
such a unit yields and return the frozen values of `rows`.
"""
