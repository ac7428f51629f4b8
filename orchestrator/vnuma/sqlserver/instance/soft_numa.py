"""SQL Server's automatic soft-NUMA: read, and set for the next start.

sys.configurations has it as `automatic soft-NUMA disabled` (SQL Server 2016 and later): `value` is the next
start's, `value_in_use` the present one's. sys.dm_os_sys_info cannot distinguish a switch that is off from a
machine with nothing to split. Source:
https://learn.microsoft.com/sql/database-engine/configure-windows/soft-numa-sql-server
"""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.errors import SqlFailed
from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run, where

_READ = (
    "SELECT CAST(value AS int) AS value, CAST(value_in_use AS int) AS value_in_use "
    "FROM sys.configurations WHERE name = N'automatic soft-NUMA disabled'"
)


@dataclass(frozen=True)
class SoftNuma:
    """Whether automatic soft-NUMA is on: at the next start, and now."""

    configured: bool
    in_use: bool


def read_soft_numa(connection: pyodbc.Connection) -> SoftNuma | None:
    """The setting; None where this version lacks it (before 2016)."""
    rows = answers.rows(connection, _READ, int, int)
    return SoftNuma(not rows[0][0], not rows[0][1]) if rows else None


def configure_soft_numa(connection: pyodbc.Connection, on: bool) -> SoftNuma:
    """Set it for the next start and read it back. Raises SqlFailed, PrivilegeMissing."""
    run(connection, f"ALTER SERVER CONFIGURATION SET SOFTNUMA {'ON' if on else 'OFF'}")
    now = read_soft_numa(connection)
    if now is None or now.configured is not on:
        raise SqlFailed(
            f"{where(connection)}: automatic soft-NUMA was switched {'on' if on else 'off'}, but reads "
            "back differently.",
            fix="It needs SQL Server 2016 or later and ALTER SETTINGS; see SELECT * FROM sys.configurations.",
        )
    return now
