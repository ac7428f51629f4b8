"""The memory nodes of cached pages of disk-based tables, and from where they are looked up.

sys.dm_os_buffer_descriptors has the memory node of every page (`numa_node`); the counters of the object
`Buffer Node` count page lookups on the worker's own node and on others. They are cumulative since the start,
whatever their names say, so only differences are meaningful. The documentation of versions up to 2014
misspells one, hence LIKE. Source:
https://learn.microsoft.com/sql/relational-databases/performance-monitor/sql-server-buffer-node
"""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.errors import MeasurementFailed
from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import present, run, where
from vnuma.sqlserver.database.dataset import committed_target_kb

_DAC = "n.node_state_desc NOT LIKE N'%DAC%'"

_PAGES = (
    "SELECT b.numa_node, COUNT_BIG(*) AS pages FROM sys.dm_os_buffer_descriptors AS b "
    "JOIN sys.allocation_units AS u ON u.allocation_unit_id = b.allocation_unit_id "
    "JOIN sys.partitions AS p ON p.hobt_id = u.container_id "
    "WHERE b.database_id = DB_ID() AND u.type IN (1, 3) AND p.object_id IN ({tables}) "
    "GROUP BY b.numa_node ORDER BY b.numa_node"
)
_LOOKUPS = (
    "SELECT RTRIM(counter_name) AS counter_name, SUM(cntr_value) AS lookups "
    "FROM sys.dm_os_performance_counters WHERE object_name LIKE N'%Buffer Node%' "
    "AND counter_name LIKE N'%page lookups/sec%' GROUP BY counter_name"
)
_TARGET = "SELECT memory_node_id, target_kb FROM sys.dm_os_memory_nodes WHERE target_kb > 0"

_NODES = (
    "SELECT n.memory_node_id, n.node_id FROM sys.dm_os_nodes AS n "
    f"WHERE {_DAC} ORDER BY n.memory_node_id, n.node_id"
)
PAGE_KB = 8


@dataclass(frozen=True)
class Lookups:
    """Page lookups of all workers since the start, or between two readings."""

    local: int
    remote: int

    @property
    def total(self) -> int:
        """Lookups on all nodes."""
        return self.local + self.remote


def sqlos_nodes(connection: pyodbc.Connection) -> dict[int, tuple[int, ...]]:
    """SQLOS nodes by memory node, without that of the dedicated administrator connection."""
    found: dict[int, tuple[int, ...]] = {}
    for memory_node, node in query.rows(connection, _NODES, int, int):
        found[memory_node] = (*found.get(memory_node, ()), node)
    return found


def target_kb(connection: pyodbc.Connection) -> dict[int, int]:
    """Memory that SQL Server may take on each memory node, in KB.

    Versions before 2016 report only the total, which is then divided evenly.
    """
    nodes = sqlos_nodes(connection)
    if present(connection, "sys.dm_os_memory_nodes", ("target_kb",)):
        targets = query.rows(connection, _TARGET, int, int)
        return {node: kb for node, kb in targets if node in nodes}
    return dict.fromkeys(nodes, committed_target_kb(connection) // max(1, len(nodes)))


def pages_by_node(connection: pyodbc.Connection, tables: tuple[str, ...]) -> dict[int, int]:
    """Pages of those tables of the current database in the buffer pool, by memory node."""
    ids = ", ".join(f"OBJECT_ID(N'{name}')" for name in tables)
    return dict(query.rows(connection, _PAGES.format(tables=ids), int, int))


def lookups(connection: pyodbc.Connection) -> Lookups:
    """The present counters. Raises MeasurementFailed where the server has none."""
    found = {name.lower(): count for name, count in query.rows(connection, _LOOKUPS, str, int)}
    local = [count for name, count in found.items() if name.startswith("local")]
    remote = [count for name, count in found.items() if name.startswith("remote")]
    if not local or not remote:
        raise MeasurementFailed(
            f"{where(connection)}: the Buffer Node counters of local and remote page lookups are missing.",
            fix="Check sys.dm_os_performance_counters. If it is empty, see lodctr /R on the guest.",
        )
    return Lookups(sum(local), sum(remote))


def drop_clean_buffers(connection: pyodbc.Connection) -> None:
    """Empty the buffer pool, so that the next reader decides where pages are placed.

    Changes no setting; other databases read their pages again. Raises PrivilegeMissing.
    """
    run(connection, "CHECKPOINT")
    run(connection, "DBCC DROPCLEANBUFFERS WITH NO_INFOMSGS")
