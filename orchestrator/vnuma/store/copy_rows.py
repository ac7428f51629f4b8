"""Copy one run with everything that belongs to it, for archives; or a whole store into an empty one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Column, Connection, Select, Table, func, insert, select, text

from vnuma.errors import StoreError, UsageError
from vnuma.store import tables
from vnuma.store.open import Store
from vnuma.store.runs import get_run, get_study, save_study

_BATCH = 5_000
_LEFT_OUT = frozenset({"study", "lease", "site", "schema_history", "estate_check", "estate_finding"})
"""Not copied: studies are shared by runs, leases and sites describe present VMs and processes, checks of an
estate belong to no run, and each store has its own schema history.
"""


def copy_run(source: Connection, target: Connection, run_id: int, *, name: str, number: int) -> int:
    """Copy run `run_id` under a free name and number of the target; returns its new id.

    Rows get new ids. The copy has no supervisor and no inventory. Both stores must have this version's
    schema.
    """
    run = get_run(source, run_id)
    study = get_study(source, run.study_id)
    ids: dict[str, dict[int, int]] = {"study": {study.id: save_study(target, study.name, study.yaml).id}}
    fixed = {
        "name": name,
        "number": number,
        "inventory": None,
        "stop_requested": None,
        "supervisor_pid": None,
        "supervisor_host": None,
        "heartbeat_at": None,
    }
    for table in tables.metadata.sorted_tables:
        if table.name not in _LEFT_OUT:
            changed = fixed if table is tables.run else {}
            ids[table.name] = _copy_table(source, target, table, run_id, ids, changed)
    return ids["run"][run_id]


def _copy_table(
    source: Connection,
    target: Connection,
    table: Table,
    run_id: int,
    ids: dict[str, dict[int, int]],
    changed: dict[str, object],
) -> dict[int, int]:
    """Copy the rows that belong to the run; returns new ids by old ones, empty for tables without ids."""
    new: dict[int, int] = {}
    query = _owned(table, run_id).execution_options(yield_per=_BATCH)
    for batch in source.execute(query).mappings().partitions():
        rows = [_moved(dict(row), table, ids) | changed for row in batch]
        if "id" not in table.c:
            target.execute(insert(table), rows)
            continue
        for old, row in zip(batch, rows, strict=True):
            new[old["id"]] = target.execute(insert(table).values(row).returning(table.c.id)).scalar_one()
    return new


def _moved(row: dict[str, Any], table: Table, ids: dict[str, dict[int, int]]) -> dict[str, Any]:
    """The row with the target's ids. Raises StoreError if a row that it refers to was not copied."""
    for column, parent in _references(table):
        if row[column.name] is not None:
            if row[column.name] not in ids[parent.name]:
                raise StoreError(
                    f"The store is damaged: a row of {table.name} names {parent.name} {row[column.name]}, "
                    "which is missing or belongs to another run.",
                    fix="Restore the store from a copy. Do not delete it: it holds VM baselines.",
                )
            row[column.name] = ids[parent.name][row[column.name]]
    row.pop("id", None)
    return row


def _owned(table: Table, run_id: int) -> Select[Any]:
    """The rows of a table that belong to a run, in the order of writing."""
    query = select(table).where(_belongs(table, run_id))
    return query.order_by(table.c.id) if "id" in table.c else query.order_by(*table.primary_key.columns)


def _belongs(table: Table, run_id: int) -> Any:
    if table is tables.run:
        return table.c.id == run_id
    column, parent = next((c, p) for c, p in _references(table) if p.name != "study")
    return column.in_(select(parent.c.id).where(_belongs(parent, run_id)))


def _references(table: Table) -> Iterator[tuple[Column[Any], Table]]:
    """Columns that refer to another table, each with that table."""
    for column in table.columns:
        for key in column.foreign_keys:
            yield column, key.column.table


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
            fix="Name an empty database. Single runs: vnuma export, then vnuma import.",
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
