"""A study's dataset: memory-optimised tables in our own database, created once and always verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from vnuma.errors import InputError
from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Maybe, fetch, run, value, where
from vnuma.sqlserver.database import dataset_sql as sql
from vnuma.sqlserver.database import ownership
from vnuma.sqlserver.database.dataset_sql import DURABILITY, TABLES, TRANSACTION_HISTORY, Column, Table

GENERATED = "generated"
_CREATE = "ansible-playbook vnuma.vnuma.dataset -i INVENTORY"
_LAYOUT = "1"
"""Version of tables and generated values: changing it recreates the dataset."""


@dataclass(frozen=True)
class DatasetSpec:
    """The requested dataset. `source` is `generated` or the name of an AdventureWorks database.

    The default row counts are AdventureWorks' own and apply only to generated rows: a copy has as many as its
    source.
    """

    database: str = "vnuma_study"
    source: str = GENERATED
    transaction_history_rows: int = 113_443
    sales_order_detail_rows: int = 121_317

    @property
    def tables(self) -> tuple[Table, ...]:
        """Its tables."""
        return TABLES

    def rows_of(self, table: Table) -> int | None:
        """How many rows to generate; None for a copy, whose source decides."""
        if self.source != GENERATED:
            return None
        return self.transaction_history_rows if table is TRANSACTION_HISTORY else self.sales_order_detail_rows

    @property
    def items(self) -> dict[str, str]:
        """The properties in the marker: a dataset with other properties is created again."""
        rows = {f"{table.name}.asked": str(self.rows_of(table)) for table in self.tables}
        return {"layout": _LAYOUT, "source": self.source, "durability": DURABILITY, **rows}


@dataclass(frozen=True)
class TableFacts:
    """Row count and a checksum over all rows, computed by SQL Server."""

    rows: int
    checksum: int


@dataclass(frozen=True)
class DatasetFacts:
    """The existing dataset. `changed`: this call created it; `generated`: its rows are synthetic."""

    database: str
    source: str
    durability: str
    generated: bool
    changed: bool
    tables: Mapping[str, TableFacts] = field(default_factory=dict)

    @property
    def max_size(self) -> int:
        """Rows of the smaller table, which limit TOP (n)."""
        return min(table.rows for table in self.tables.values())


def prepare(connection: pyodbc.Connection, spec: DatasetSpec) -> DatasetFacts:
    """Create the dataset unless it exists as recorded, and verify it by count and checksum.

    Idempotent. Raises ForeignDatabase for a database that vnuma did not create, InputError for an invalid
    source, ServerError, PrivilegeMissing.
    """
    if spec.source.casefold() == spec.database.casefold():
        raise InputError(
            f"dataset.source and dataset.database are both {spec.database}.",
            fix="The copy needs its own database; vnuma creates it.",
        )
    if not ownership.require_ours(connection, spec.database):
        if not has_memory_optimised(connection):
            raise ServerError(
                f"{where(connection)}: this SQL Server has no memory-optimised tables (In-Memory OLTP).",
                fix="Use SQL Server 2016 SP1 or later, or Developer or Enterprise edition.",
            )
        ownership.create(connection, spec.database)
    with inside(connection, spec.database):
        recorded = ownership.read_marker(connection)
        present = _present(connection, spec)
        if {**recorded, **spec.items, **_recorded(present)} == recorded and len(present) == len(spec.tables):
            return _dataset(spec, present, changed=False)
        ownership.write_marker(connection, {})
        ensure_filegroup(connection, spec.database)
        made = {table.name: _remake(connection, table, spec) for table in spec.tables}
        ownership.write_marker(connection, {**spec.items, **_recorded(made)})
        return _dataset(spec, made, changed=True)


def verify(connection: pyodbc.Connection, spec: DatasetSpec) -> DatasetFacts:
    """Count and checksum the dataset, changing nothing. Raises ServerError if it differs from the record."""
    if not ownership.require_ours(connection, spec.database):
        raise ServerError(
            f"{where(connection)}: the database {spec.database} does not exist.",
            fix=f"Create it: {_CREATE}",
        )
    with inside(connection, spec.database):
        recorded = ownership.read_marker(connection)
        present = _present(connection, spec)
    wanted = {**spec.items, **_recorded(present)}
    wrong = [item for item, text in wanted.items() if recorded.get(item) != text]
    wrong += [table.full_name for table in spec.tables if table.name not in present]
    if wrong:
        raise ServerError(
            f"{where(connection)}: the dataset in {spec.database} differs from its record "
            f"({', '.join(wrong)}).",
            fix=f"Create it again: {_CREATE}",
        )
    return _dataset(spec, present, changed=False)


def drop(connection: pyodbc.Connection, database: str) -> bool:
    """Drop our database, closing other connections to it. False if there is none. Raises ForeignDatabase."""
    ours = ownership.require_ours(connection, database)
    if ours:
        ownership.drop(connection, database)
    return ours


def _remake(connection: pyodbc.Connection, table: Table, spec: DatasetSpec) -> TableFacts:
    """Drop, create and fill one table, and verify its content."""
    if value(connection, f"SELECT SCHEMA_ID({sql.literal(table.schema)}) AS schema_id") is None:
        run(connection, f"CREATE SCHEMA {table.schema}")
    if _exists(connection, table):
        run(connection, f"DROP TABLE {table.full_name}")
    run(connection, sql.create_table(table))
    rows, checksum = spec.rows_of(table), None
    if rows is None:
        copied = _copy(connection, table, spec.source)
        rows, checksum = copied.rows, copied.checksum
    else:
        for statement in sql.generate(table, rows):
            run(connection, statement)
    made = _facts(connection, table)
    if made.rows != rows or checksum not in (None, made.checksum):
        raise ServerError(
            f"{where(connection)}: {table.full_name} has {made.rows:,} rows with checksum "
            f"{made.checksum} instead of {rows:,} with {checksum}.",
            fix="Prepare it again; if that fails again, report it with SQL Server's error log.",
        )
    _require_storage(connection, table)
    return made


def _copy(connection: pyodbc.Connection, table: Table, source: str) -> TableFacts:
    """Copy in two steps: no statement may use the source and a memory-optimised table."""
    if value(connection, sql.object_id(f"{sql.identifier(source)}.{table.full_name}")) is None:
        raise InputError(
            f"dataset.source: {source} has no table {table.full_name} that this login can read.",
            fix="Name an AdventureWorks database (OLTP) of this server, or use source: generated.",
        )
    _drop_staging(connection)
    run(connection, sql.stage(table, source))
    staged = _facts(connection, table, sql.STAGING)
    run(connection, sql.unstage(table))
    _drop_staging(connection)
    return staged


def _drop_staging(connection: pyodbc.Connection) -> None:
    if value(connection, sql.object_id(sql.STAGING)) is not None:
        run(connection, f"DROP TABLE {sql.STAGING}")


def _present(connection: pyodbc.Connection, spec: DatasetSpec) -> dict[str, TableFacts]:
    """Those of its tables that exist, by name."""
    return {table.name: _facts(connection, table) for table in spec.tables if _exists(connection, table)}


def _exists(connection: pyodbc.Connection, table: Table) -> bool:
    return value(connection, sql.object_id(table.full_name)) is not None


def _facts(connection: pyodbc.Connection, table: Table, place: str = "") -> TableFacts:
    """Of the table's content, or of its copy elsewhere."""
    rows, checksum = query.row(connection, sql.content(table, place or table.full_name), int, Maybe(int))
    return TableFacts(rows, checksum or 0)  # the sum over no rows is NULL


def _require_storage(connection: pyodbc.Connection, table: Table) -> None:
    found = fetch(connection, sql.storage(table))
    if not found or not found[0][0] or found[0][1] != DURABILITY:
        raise ServerError(
            f"{where(connection)}: {table.full_name} is not memory-optimised with {DURABILITY}: {found}.",
        )


def has_memory_optimised(connection: pyodbc.Connection) -> bool:
    return bool(value(connection, sql.XTP_SUPPORTED) == 1)


def ensure_filegroup(connection: pyodbc.Connection, database: str) -> None:
    """Make the current database, ours, able to hold memory-optimised tables."""
    if not value(connection, sql.COUNT_FILEGROUPS):
        run(connection, sql.add_filegroup(database))
    if not value(connection, sql.COUNT_FILES):
        run(connection, sql.add_file(database, str(value(connection, sql.DATA_PATH))))


@contextmanager
def inside(connection: pyodbc.Connection, database: str) -> Iterator[None]:
    """Use the database inside the `with`, and master afterwards, so that the connection does not block it."""
    run(connection, f"USE {sql.identifier(database)}")
    yield
    run(connection, "USE [master]")


def _recorded(tables: Mapping[str, TableFacts]) -> dict[str, str]:
    rows = {f"{name}.rows": str(facts.rows) for name, facts in tables.items()}
    return rows | {f"{name}.checksum": str(facts.checksum) for name, facts in tables.items()}


def _dataset(spec: DatasetSpec, tables: Mapping[str, TableFacts], *, changed: bool) -> DatasetFacts:
    return DatasetFacts(
        database=spec.database,
        source=spec.source,
        durability=DURABILITY,
        generated=spec.source == GENERATED,
        changed=changed,
        tables={table.full_name: tables[table.name] for table in spec.tables},
    )


ROWS_PER_MB = 512

_PAYLOAD_BYTES = 2_008
"""With two int columns, 24 bytes of row header and 8 for the index: 2,048.

https://learn.microsoft.com/sql/relational-databases/in-memory-oltp/table-and-row-size-in-memory-optimized-tables
"""


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


def committed_target_kb(connection: pyodbc.Connection) -> int:
    """Memory that SQL Server may use, in KB."""
    return query.whole(connection, "SELECT committed_target_kb FROM sys.dm_os_sys_info")
