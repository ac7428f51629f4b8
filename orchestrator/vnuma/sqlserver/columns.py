"""Which columns a system view has on this version: asking for one that it lacks is message 207."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vnuma.sqlserver.odbc import pyodbc
from vnuma.sqlserver.query import fetch


def present(connection: pyodbc.Connection, view: str, wanted: Sequence[str]) -> tuple[str, ...]:
    """Those of the wanted columns that the view has, in the order wanted."""
    rows = fetch(connection, f"SELECT name FROM sys.all_columns WHERE object_id = OBJECT_ID(N'{view}')")
    names = {str(name) for (name,) in rows}
    return tuple(column for column in wanted if column in names)


def read_one(connection: pyodbc.Connection, view: str, wanted: Sequence[str]) -> dict[str, Any]:
    """The view's only row; columns that this version lacks are absent."""
    columns = present(connection, view, wanted)
    rows = fetch(connection, f"SELECT {', '.join(columns)} FROM {view}")
    return dict(zip(columns, rows[0], strict=True)) if rows else {}
