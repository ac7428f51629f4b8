"""What prevents the log's load from running on a SQL Server, checked before the first change."""

from __future__ import annotations

from collections.abc import Iterator

from vnuma.errors import PrivilegeMissing
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import value
from vnuma.sqlserver.database.ownership import major_version
from vnuma.sqlserver.database.scan_tables import committed_target_mb
from vnuma.sqlserver.instance import log_writers, resource_pool
from vnuma.workloads import memory_optimised
from vnuma.workloads.bench import Obstacle
from vnuma.workloads.log_spinlock.settings import LogSpinlock

_SINCE = 12
"""SQL Server 2014: delayed durability and natively compiled procedures."""


def obstacles(connection: pyodbc.Connection, settings: LogSpinlock) -> Iterator[Obstacle]:
    """Each obstacle, with what to do about it."""
    if major_version(connection) < _SINCE:
        yield Obstacle(
            "This SQL Server is older than 2014: it has neither delayed durability nor In-Memory OLTP.",
            "Use SQL Server 2014 or later.",
        )
        return
    yield from _rights(connection, "ALTER SETTINGS", "set the process affinity (ALTER SERVER CONFIGURATION)")
    yield from _writers(connection)
    if "native" in settings.forms:
        yield from _native(connection, settings)


def _rights(connection: pyodbc.Connection, permission: str, purpose: str) -> Iterator[Obstacle]:
    if value(connection, f"SELECT HAS_PERMS_BY_NAME(NULL, NULL, N'{permission}') AS granted") != 1:
        yield Obstacle(
            f"The login may not {purpose}: it lacks {permission}.", f"GRANT {permission} TO the login."
        )


def _writers(connection: pyodbc.Connection) -> Iterator[Obstacle]:
    """Log writers must be visible and on a single node, since that node is compared with another."""
    try:
        writers = log_writers.read_log_writers(connection)
    except PrivilegeMissing as error:
        yield Obstacle(error.what, error.fix or "GRANT VIEW SERVER STATE TO the login.")
        return
    nodes = sorted({writer.memory_node_id for writer in writers})
    if not nodes:
        yield Obstacle(
            "SQL Server shows no log writer (sys.dm_exec_requests, command LOG WRITER).",
            "Which version is it? Report it with SELECT @@VERSION.",
        )
    elif len(nodes) > 1:
        yield Obstacle(
            f"The log writers are on memory nodes {', '.join(map(str, nodes))}: no node without one is left.",
            "This workload compares the log writers' node with another; it cannot run on this SQL Server.",
        )


def _native(connection: pyodbc.Connection, settings: LogSpinlock) -> Iterator[Obstacle]:
    """In-Memory OLTP, a resource pool for it, and memory for the largest load."""
    without = "Use Enterprise or Developer edition, or set workload.forms: [disk]."
    missing = [Obstacle(one.what, without) for one in memory_optimised.obstacle(connection)]
    if missing:
        yield from missing
        return
    if not resource_pool.has_governor(connection):
        yield Obstacle("This edition has no Resource Governor, so memory cannot be kept apart.", without)
        return
    yield from _rights(connection, "CONTROL SERVER", "make a resource pool (CREATE RESOURCE POOL)")
    governor = resource_pool.read_governor(connection)
    if governor.pending:
        yield Obstacle(
            "Changes to the Resource Governor are waiting for RECONFIGURE, which this workload would "
            "put into effect.",
            "ALTER RESOURCE GOVERNOR RECONFIGURE, or take the changes back.",
        )
    if governor.pool_percent is not None:
        yield Obstacle(
            f"The resource pool {resource_pool.POOL} already exists, left by another run.",
            f"vnuma restore the VM, or DROP RESOURCE POOL {resource_pool.POOL}.",
        )
    most = committed_target_mb(connection) * settings.pool_percent / 100
    if settings.native_mb > most:
        yield Obstacle(
            f"{max(settings.sizes):,} inserts of form native need {settings.native_mb:,} MB; "
            f"workload.pool_percent {settings.pool_percent} leaves {most:,.0f} MB.",
            "Use smaller sizes, a larger share, or give SQL Server more memory.",
        )
