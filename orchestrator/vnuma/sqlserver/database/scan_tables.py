"""The tables to scan: rows of 2,048 bytes, so that a size in MB is a number of rows."""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.database.dataset import DatasetSpec
from vnuma.sqlserver.database.dataset_sql import Column, Table

ROWS_PER_MB = 512

_PAYLOAD_BYTES = 2_008
"""With two int columns, 24 bytes of row header and 8 for the index: 2,048.

https://learn.microsoft.com/sql/relational-databases/in-memory-oltp/table-and-row-size-in-memory-optimized-tables
"""

COMMITTED_TARGET = "SELECT committed_target_kb FROM sys.dm_os_sys_info"
"""Memory that SQL Server may use, in KB."""


def scan_table(size_mb: int) -> Table:
    """The table of one size. Its payload has no blanks, which CHECKSUM would ignore."""
    payload = f"REPLICATE('8-bytes-', {_PAYLOAD_BYTES // 8})"
    return Table(
        schema="dbo",
        name=f"scan_{size_mb}_mb",
        key=("id",),
        columns=(
            Column("id", "int", "n"),
            Column("payload", f"char({_PAYLOAD_BYTES})", payload),
            Column("amount", "int", "n * 37 % 350000"),
        ),
    )


@dataclass(frozen=True)
class ScanSpec(DatasetSpec):
    """Tables for these sizes, in MB."""

    sizes_mb: tuple[int, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        """One for each size."""
        return tuple(scan_table(size) for size in self.sizes_mb)

    def rows_of(self, table: Table) -> int:
        """The number of rows with the table's size."""
        return dict(zip(self.tables, self.sizes_mb, strict=True))[table] * ROWS_PER_MB


def committed_target_mb(connection: pyodbc.Connection) -> float:
    """Memory that SQL Server may use, in MB."""
    return answers.whole(connection, COMMITTED_TARGET) / 1024
