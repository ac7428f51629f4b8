"""Copy a whole store into an empty one."""

from __future__ import annotations

from sqlalchemy import Connection, Table, func, insert, select, text

from vnuma.errors import StoreError, UsageError
from vnuma.store import tables
from vnuma.store.open import Store

_BATCH = 5_000
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
            _copy_rows(old, new, table)
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


def _copy_rows(old: Connection, new: Connection, table: Table) -> None:
    query = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=_BATCH)
    for batch in old.execute(query).mappings().partitions():
        new.execute(insert(table), [dict(row) for row in batch])


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
