"""A system view's columns in this version; selecting a missing one is message 207."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vnuma.sqlserver.client.answers import Kind, Maybe, as_sent, row, unexpected
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import fetch


def present(connection: pyodbc.Connection, view: str, wanted: Sequence[str]) -> tuple[str, ...]:
    """The wanted columns that the view has, in that order."""
    rows = fetch(connection, f"SELECT name FROM sys.all_columns WHERE object_id = OBJECT_ID(N'{view}')")
    names = {str(name) for (name,) in rows}
    return tuple(column for column in wanted if column in names)


def read_one(
    connection: pyodbc.Connection, view: str, wanted: Sequence[str], *, needed: Mapping[str, Kind]
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
