"""One run's rows as a document of plain values, and a private store that is filled from such a document.

The document may come from a stranger. Every value is checked against its column, and the tables' own
constraints refuse rows that contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Integer,
    Select,
    Table,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.exc import IntegrityError

from vnuma.errors import StoreError, UsageError
from vnuma.store import tables
from vnuma.store.open import Store, private_store
from vnuma.store.rows import Sample
from vnuma.store.samples import sample_values
from vnuma.store.tables import CanonicalJson, OneOf, UtcTime, iso
from vnuma.words.plain_text import refuse_controls

_BATCH = 5_000

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows by table, each by column: times as ISO text, documents as they are."""

_TABLES = (tables.study, tables.run, tables.vm, tables.cell, tables.attempt, tables.fact)
"""Parents before children. Leases, sites and the audit log describe the place of the store."""

_LEFT_OUT = frozenset({"inventory", "stop_requested", "supervisor_pid", "supervisor_host", "heartbeat_at"})
"""Columns of a run that only its own store needs."""

_LINES_OF_TEXT = frozenset({"yaml", "detail"})
"""Columns whose text may have line breaks; all other text is one line without control characters."""

_YEARS = range(2000, 2200)


def rows_of(conn: Connection, run_id: int) -> Rows:
    """Everything that belongs to the run except its samples. Raises StoreError for an orphaned row."""
    rows = {
        table.name: [
            {name: _plain(value) for name, value in row.items() if name not in _LEFT_OUT}
            for row in conn.execute(_owned(table, run_id)).mappings()
        ]
        for table in _TABLES
    }
    for table in _TABLES:
        _refuse_orphans(table, rows)
    return rows


def _refuse_orphans(table: Table, rows: Rows) -> None:
    for key in table.foreign_keys:
        parent = key.column.table.name
        there = {row["id"] for row in rows.get(parent, ())}
        named = {row[key.parent.name] for row in rows[table.name] if row.get(key.parent.name) is not None}
        if parent in rows and (missing := named - there):
            raise StoreError(
                f"The store is damaged: {table.name} names {parent} {min(missing)}, which is missing.",
                fix="Use a backup of the store.",
            )


def _plain(value: object) -> object:
    return iso(value) if isinstance(value, datetime) else value


def _owned(table: Table, run_id: int) -> Select[Any]:
    """The rows of a table that belong to a run, in the order of writing."""
    run = tables.run.c
    if table is tables.study:
        return select(table).where(table.c.id.in_(select(run.study_id).where(run.id == run_id)))
    if table is tables.run:
        return select(table).where(run.id == run_id)
    if table is tables.attempt:
        cells = select(tables.cell.c.id).where(tables.cell.c.run_id == run_id)
        return select(table).where(table.c.cell_id.in_(cells)).order_by(table.c.id)
    return select(table).where(table.c.run_id == run_id).order_by(table.c.id)


def store_of_rows(name: str, rows: Rows, samples: Iterable[tuple[int, Sample]]) -> Store:
    """A private store with these rows, and the samples of its attempts by id; `name` is for messages.

    Raises ValueError for a row that vnuma does not write.
    """
    store = private_store(name)
    try:
        with store.write() as conn:
            for table in _TABLES:
                _fill(conn, table, rows.get(table.name))
            left = (sample_values(*one) for one in samples)
            while batch := list(islice(left, _BATCH)):
                conn.execute(insert(tables.sample), batch)
    except StoreError as error:
        if isinstance(error.__cause__, IntegrityError):
            raise ValueError(str(error.__cause__.orig)) from error  # noqa: TRY004 - an error of the content
        raise
    return store


def _fill(conn: Connection, table: Table, rows: object) -> None:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{table.name} is not a list of rows")
    for row in rows:
        unknown = set(row) - set(table.c.keys())
        if unknown:
            raise ValueError(f"{table.name} has no column {min(map(repr, unknown))[:60]}")
        conn.execute(
            insert(table), {column.name: stored_value(column, row.get(column.name)) for column in table.c}
        )


def stored_value(column: Column[Any], value: object) -> object:
    """The value for its column. Raises ValueError for one that vnuma never writes there."""
    try:
        return _checked(column, value)
    except ValueError as error:
        raise ValueError(f"{column.table.name}.{column.name}: {error}") from error


def _checked(column: Column[Any], value: object) -> object:
    kind = column.type
    if value is None or isinstance(kind, CanonicalJson):
        if value is None and not column.nullable:
            raise ValueError("the value is missing")
        return value
    whole = int if isinstance(kind, Integer | Boolean) else str
    wanted = (int, float) if isinstance(kind, Double) else whole
    if not isinstance(value, wanted) or (isinstance(value, bool) and not isinstance(kind, Boolean)):
        raise ValueError(f"{type(value).__name__} is not a valid type")  # noqa: TRY004 - one kind for all
    if isinstance(kind, UtcTime):
        return moment_of(str(value))
    if isinstance(kind, OneOf):
        return kind.words(value)
    if isinstance(value, int) and not isinstance(kind, BigInteger) and not -(2**31) <= value < 2**31:
        raise ValueError("more than 32 bits")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("not a finite number")
    if isinstance(value, str):
        refuse_controls(value, lines=column.name in _LINES_OF_TEXT)
    return value


def moment_of(text: str) -> datetime:
    """A time with its zone. Raises ValueError for another text, and for a year in which no run was made."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or moment.year not in _YEARS:
        raise ValueError(f"{text[:40]!r} is not a valid time of a run")
    return moment


_COPIED = tuple(table for table in tables.metadata.sorted_tables if table is not tables.schema_history)
"""Parents before children. Each store keeps its own schema history."""


def copy_store(source: Store, target: Store) -> dict[str, int]:
    """Copy every row with its id; returns the number of rows by table.

    Uses one transaction of the target, so an interrupted copy leaves it empty and can be repeated. Raises
    UsageError for a target with rows; StoreError, also if the counts differ at the end.
    """
    with source.read() as old, target.write() as new:
        _refuse_unless_empty(new, target)
        for table in _COPIED:
            query = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=_BATCH)
            for batch in old.execute(query).mappings().partitions():
                new.execute(insert(table), [dict(row) for row in batch])
        counts = {table.name: _count(old, table) for table in _COPIED}
        for table in _COPIED:
            if (there := _count(new, table)) != counts[table.name]:
                raise StoreError(
                    f"{target.place} got {there} rows of {table.name} instead of {counts[table.name]}; "
                    "nothing was kept.",
                    fix="Copy again. If it happens twice, please report it.",
                )
        if not target.place.is_sqlite:
            _continue_ids(new)
    return counts


def refuse_unless_empty(target: Store) -> None:
    """Raise UsageError for a store with rows, before a copy creates anything. Raises StoreError."""
    with target.read() as connection:
        _refuse_unless_empty(connection, target)


def _refuse_unless_empty(new: Connection, target: Store) -> None:
    filled = next((table.name for table in _COPIED if _count(new, table)), None)
    if filled:
        raise UsageError(
            f"{target.place} is not empty (rows in {filled}). A store can only be copied into an empty one.",
            fix="Name an empty database. Single runs: vnuma export writes one to a file.",
        )


def _count(conn: Connection, table: Table) -> int:
    return conn.scalar(select(func.count()).select_from(table)) or 0


def _continue_ids(new: Connection) -> None:
    """PostgreSQL generates ids itself, and inserting rows with ids did not advance its sequences."""
    for table in _COPIED:
        if "id" in table.c:
            new.execute(
                text(
                    "SELECT setval(pg_get_serial_sequence(:name, 'id'), max(id)) "
                    f'FROM "{table.name}" HAVING max(id) IS NOT NULL'
                ),
                {"name": table.name},
            )
