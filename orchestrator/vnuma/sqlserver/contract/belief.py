"""A belief: one sentence with its source, and how a server is asked whether it is so."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vnuma.sqlserver.client.failures import natives
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Row, fetch, open_cursor

_NUMBER = re.compile(r"\((-?\d{1,10})\)\s*$")

DATABASE = "vnuma_contract"


class Verdict(StrEnum):
    """What came of asking one server."""

    HELD = "held"
    DIFFERS = "differs"
    NOT_EVALUABLE = "not evaluable"


class DiffersError(Exception):
    """The server answered something else; the text says what was seen, without names."""


class NotEvaluableError(Exception):
    """This server cannot be asked: an older version, or a right that is missing."""


@dataclass(frozen=True)
class Event:
    """One thing that a batch's answer brought, in order: `rows`, `message` or `error`, and its number."""

    kind: str
    number: int
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


@dataclass(frozen=True)
class Asked:
    """One connection to the server that is asked, in a database of our own where there is one."""

    connection: pyodbc.Connection
    major: int
    """12 for SQL Server 2014, 13 for 2016 and so on."""

    def rows(self, statement: str) -> list[Row]:
        """Every row of the first result."""
        return fetch(self.connection, statement)

    def value(self, statement: str) -> Any:
        """The first value; raises DiffersError where there is no row."""
        found = self.rows(statement)
        if not found:
            raise DiffersError("no row")
        return found[0][0]

    def error(self, batch: str) -> int | None:
        """The number of the batch's first error; None without one."""
        return next((event.number for event in self.events(batch) if event.kind == "error"), None)

    def events(self, batch: str) -> list[Event]:
        """What the batch's answer brought, up to its first error: pyodbc reads nothing behind one."""
        found: list[Event] = []
        with open_cursor(self.connection) as cursor:
            try:
                cursor.execute(batch)
                found += _brought(cursor)
                while cursor.nextset():
                    found += _brought(cursor)
                found += _brought(cursor)
            except pyodbc.Error as error:
                found += [Event("error", number) for number in natives(error)[:1]]
        return found

    def expect(self, seen: object, wanted: object) -> str:
        """What was seen, as text; raises DiffersError where it is something else than wanted."""
        if seen != wanted:
            raise DiffersError(f"{seen} instead of {wanted}")
        return str(seen)


@dataclass(frozen=True)
class Belief:
    """`look` returns what was seen; raises DiffersError, NotEvaluableError, or any error of the adapter."""

    id: str
    says: str
    source: str
    look: Callable[[Asked], str]
    since: int = 0
    """The major version from which it is believed; an older server is not asked."""


BELIEFS: dict[str, Belief] = {}


def belief(
    id_: str, source: str, since: int = 0
) -> Callable[[Callable[[Asked], str]], Callable[[Asked], str]]:
    """Declare a function as the look of a belief; its docstring is the sentence."""

    def declare(look: Callable[[Asked], str]) -> Callable[[Asked], str]:
        add(Belief(id_, " ".join((look.__doc__ or "").split()), source, look, since))
        return look

    return declare


def add(one: Belief) -> None:
    """Add a belief. Two of one id are a mistake of ours."""
    assert one.id not in BELIEFS, one.id
    BELIEFS[one.id] = one


def _brought(cursor: pyodbc.Cursor) -> list[Event]:
    rows = [Event("rows", len(cursor.fetchall()))] if cursor.description else []
    told = [(_NUMBER.search(state), text) for state, text in cursor.messages or ()]
    return rows + [Event("message", int(number[1]), text) for number, text in told if number]
