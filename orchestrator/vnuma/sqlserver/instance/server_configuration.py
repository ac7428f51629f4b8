"""What ALTER SERVER CONFIGURATION sets: process affinity, at once, and soft-NUMA, at the next start.

Process affinity names the guest CPUs on which SQL Server's schedulers run. The statement takes CPUs or NUMA
nodes; CPUs are used here, because soft-NUMA nodes interleave them. Other schedulers are VISIBLE OFFLINE. It
survives restarts. Source:
https://learn.microsoft.com/sql/t-sql/statements/alter-server-configuration-transact-sql

sys.configurations has soft-NUMA as `automatic soft-NUMA disabled` (SQL Server 2016 and later): `value` is the
next start's, `value_in_use` the present one's. sys.dm_os_sys_info cannot distinguish a switch that is off
from a machine with nothing to split. Source:
https://learn.microsoft.com/sql/database-engine/configure-windows/soft-numa-sql-server
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from vnuma.errors import SqlFailed
from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Row, run, value, where

AUTO = "AUTO"

_SCHEDULERS = (
    "SELECT s.cpu_id, n.memory_node_id, s.status FROM sys.dm_os_schedulers AS s "
    "JOIN sys.dm_os_nodes AS n ON n.node_id = s.parent_node_id "
    "WHERE s.status IN (N'VISIBLE ONLINE', N'VISIBLE OFFLINE') ORDER BY s.cpu_id"
)


def read_affinity(connection: pyodbc.Connection) -> str:
    """`AUTO`, or a list of the CPUs in use: `0,1,2`. Raises PrivilegeMissing without VIEW SERVER STATE."""
    kind = value(connection, "SELECT affinity_type_desc FROM sys.dm_os_sys_info")
    return AUTO if kind == AUTO else affinity_to(online_cpus(connection))


def online_cpus(connection: pyodbc.Connection) -> tuple[int, ...]:
    """The guest's CPUs whose schedulers are online."""
    return tuple(cpu for cpu, _node, status in _schedulers(connection) if status == "VISIBLE ONLINE")


def cpus_by_memory_node(connection: pyodbc.Connection) -> dict[int, tuple[int, ...]]:
    """The CPUs in use by memory node, which is a vNUMA node of the guest."""
    found: dict[int, list[int]] = defaultdict(list)
    for cpu, node, status in _schedulers(connection):
        if status == "VISIBLE ONLINE":
            found[node].append(cpu)
    return {node: tuple(cpus) for node, cpus in sorted(found.items())}


def _schedulers(connection: pyodbc.Connection) -> list[Row]:
    return answers.rows(connection, _SCHEDULERS, int, int, str)


def set_affinity(connection: pyodbc.Connection, wanted: str) -> None:
    """Set it to `AUTO` or a list of CPUs, and read it back. Raises SqlFailed, PrivilegeMissing."""
    run(connection, f"ALTER SERVER CONFIGURATION SET PROCESS AFFINITY CPU = {_checked(wanted)}")
    now = read_affinity(connection)
    if now != wanted:
        raise SqlFailed(
            f"{where(connection)}: process affinity was set to {wanted}, but reads back as {now}.",
            fix="It needs ALTER SETTINGS; see sys.dm_os_schedulers.",
        )


def affinity_to(cpus: Iterable[int]) -> str:
    """The affinity value for those CPUs."""
    return ",".join(map(str, sorted(cpus)))


def _checked(wanted: str) -> str:
    """Allows only this module's own values into the statement."""
    return AUTO if wanted == AUTO else affinity_to(int(cpu) for cpu in wanted.split(","))


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
