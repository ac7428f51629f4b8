"""Rows of a known shape. A row or value that is missing is an error with a sentence, never a crash.

What a system view shows depends on version, edition, rights and platform: none of its columns is certain.
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
    """SQL Server answered without a row or a value that is needed."""


@dataclass(frozen=True)
class Maybe:
    """A kind whose value may be missing: NULL stays None."""

    kind: Callable[[Any], Any]


Kind = Callable[[Any], Any] | Maybe
"""Makes a value what it has to be; raises TypeError or ValueError for one that it cannot be."""


def rows(
    connection: pyodbc.Connection, statement: str, *kinds: Kind, parameters: tuple[str | int, ...] = ()
) -> list[Row]:
    """Every row, each value made its column's kind. Raises UnexpectedAnswer, and what `fetch` raises."""
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
    """The first row. Raises UnexpectedAnswer when there is none, too."""
    found = rows(connection, statement, *kinds, parameters=parameters)
    if not found:
        raise unexpected(connection, "no row", statement)
    return found[0]


def whole(connection: pyodbc.Connection, statement: str, *parameters: str | int) -> int:
    """The whole number that is the first row's only value."""
    return int(row(connection, statement, int, parameters=parameters)[0])


def as_sent(item: object) -> object:
    """The kind of a value that is only kept."""
    return item


def moment(item: object) -> datetime:
    """The kind of a datetime."""
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
