"""Rows with expected columns. A missing row or value is an error with a message, never a crash.

What a system view shows depends on version, edition, rights and platform, so none of its columns is certain.
Selecting a column that this version lacks is message 207.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vnuma.errors import SqlFailed
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Row, fetch, where


class UnexpectedAnswer(SqlFailed):
    """SQL Server's answer lacks a required row or value."""


@dataclass(frozen=True)
class Maybe:
    """A converter whose value may be missing: NULL stays None."""

    kind: Callable[[Any], Any]


ColumnKind = Callable[[Any], Any] | Maybe
"""Converts a value; raises TypeError or ValueError for an invalid one."""


def rows(
    connection: pyodbc.Connection, statement: str, *kinds: ColumnKind, parameters: tuple[str | int, ...] = ()
) -> list[Row]:
    """Every row, with each value converted. Raises UnexpectedAnswer, and what `fetch` raises."""
    found = fetch(connection, statement, *parameters)
    for one in found:
        if len(one) != len(kinds):
            raise unexpected(connection, f"{len(one)} columns instead of {len(kinds)}", statement)
    made = []
    for one in found:
        try:
            made.append(tuple(_made(kind, item) for kind, item in zip(kinds, one, strict=True)))
        except (TypeError, ValueError):
            raise unexpected(connection, f"the row {one}", statement) from None
    return made


def row(
    connection: pyodbc.Connection, statement: str, *kinds: ColumnKind, parameters: tuple[str | int, ...] = ()
) -> Row:
    """The first row. Raises UnexpectedAnswer, also when there is none."""
    found = rows(connection, statement, *kinds, parameters=parameters)
    if not found:
        raise unexpected(connection, "no row", statement)
    return found[0]


def whole(connection: pyodbc.Connection, statement: str, *parameters: str | int) -> int:
    """The integer that is the first row's only value."""
    return int(row(connection, statement, int, parameters=parameters)[0])


def as_sent(item: object) -> object:
    """The converter for a value that is only stored."""
    return item


def moment(item: object) -> datetime:
    """The converter for a datetime."""
    if isinstance(item, datetime):
        return item
    raise ValueError(f"{item!r} is not a datetime")


def unexpected(connection: pyodbc.Connection, found: str, asked: str) -> UnexpectedAnswer:
    """The error for an answer that lacks something."""
    return UnexpectedAnswer(
        f"{where(connection)}: SQL Server answered with {found} to: {' '.join(asked.split())[:120]} ...",
        fix="Run it by hand with this login. Check that the login has VIEW SERVER STATE: vnuma doctor",
    )


def _made(kind: ColumnKind, item: object) -> Any:
    if isinstance(kind, Maybe):
        return None if item is None else kind.kind(item)
    if item is None:
        raise ValueError("NULL")
    return kind(item)


def present(connection: pyodbc.Connection, view: str, wanted: Sequence[str]) -> tuple[str, ...]:
    """The wanted columns that the view has, in that order."""
    rows = fetch(connection, f"SELECT name FROM sys.all_columns WHERE object_id = OBJECT_ID(N'{view}')")
    names = {str(name) for (name,) in rows}
    return tuple(column for column in wanted if column in names)


def read_one(
    connection: pyodbc.Connection, view: str, wanted: Sequence[str], *, needed: Mapping[str, ColumnKind]
) -> dict[str, Any]:
    """The view's only row, without columns that this version lacks.

    Raises UnexpectedAnswer when the view lacks a `needed` column, or its row, or a value of the right type.
    """
    columns = present(connection, view, (*needed, *wanted))
    lacking = [name for name in needed if name not in columns]
    if lacking:
        raise unexpected(connection, f"no column {', '.join(lacking)}", f"SELECT * FROM {view}")
    kinds = [needed.get(name, Maybe(as_sent)) for name in columns]
    found = row(connection, f"SELECT {', '.join(columns)} FROM {view}", *kinds)
    return dict(zip(columns, found, strict=True))
