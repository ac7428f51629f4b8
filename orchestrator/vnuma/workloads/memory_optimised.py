"""What workloads on memory-optimised tables need of a SQL Server."""

from __future__ import annotations

from collections.abc import Iterator

from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.database.dataset import has_memory_optimised
from vnuma.workloads.bench import Obstacle


def obstacle(connection: pyodbc.Connection) -> Iterator[Obstacle]:
    """A SQL Server without In-Memory OLTP."""
    if not has_memory_optimised(connection):
        yield Obstacle(
            "This SQL Server has no memory-optimised tables (In-Memory OLTP).",
            "Use SQL Server 2016 SP1 or later, or Developer or Enterprise edition.",
        )
