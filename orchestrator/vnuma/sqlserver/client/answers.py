"""Rows with expected columns. A missing row or value is an error with a message, never a crash.

What a system view shows depends on version, edition, rights and platform, so none of its columns is certain.
"""

from __future__ import annotations

from collections.abc import Callable
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


Kind = Callable[[Any], Any] | Maybe
"""Converts a value; raises TypeError or ValueError for an invalid one."""


def rows(
    connection: pyodbc.Connection, statement: str, *kinds: Kind, parameters: tuple[str | int, ...] = ()
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
    connection: pyodbc.Connection, statement: str, *kinds: Kind, parameters: tuple[str | int, ...] = ()
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


def _made(kind: Kind, item: object) -> Any:
    if isinstance(kind, Maybe):
        return None if item is None else kind.kind(item)
    if item is None:
        raise ValueError("NULL")
    return kind(item)
