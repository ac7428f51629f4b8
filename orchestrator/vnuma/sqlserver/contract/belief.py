"""How an assumption is checked on a SQL Server, and the list of assumptions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from vnuma.domain.contract.belief import Beliefs, DiffersError
from vnuma.sqlserver.client.failures import natives
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Row, fetch, open_cursor

_NUMBER = re.compile(r"\((-?\d{1,10})\)\s*$")

DATABASE = "vnuma_contract"


@dataclass(frozen=True)
class Event:
    """One part of a batch's answer, in order: `rows`, `message` or `error`, and its number."""

    kind: str
    number: int
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"


@dataclass(frozen=True)
class Asked:
    """A connection to the server to check, in a database of our own where possible."""

    connection: pyodbc.Connection
    major: int
    """12 for SQL Server 2014, 13 for 2016 and so on."""

    def rows(self, statement: str) -> list[Row]:
        """Every row of the first result."""
        return fetch(self.connection, statement)

    def value(self, statement: str) -> Any:
        """The first value. Raises DiffersError without a row."""
        found = self.rows(statement)
        if not found:
            raise DiffersError("no row")
        return found[0][0]

    def error(self, batch: str) -> int | None:
        """The number of the batch's first error; None without one."""
        return next((event.number for event in self.events(batch) if event.kind == "error"), None)

    def events(self, batch: str) -> list[Event]:
        """The parts of the batch's answer up to its first error: pyodbc reads nothing after one."""
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


BELIEFS: Beliefs[Asked] = Beliefs()


def _brought(cursor: pyodbc.Cursor) -> list[Event]:
    rows = [Event("rows", len(cursor.fetchall()))] if cursor.description else []
    told = [(_NUMBER.search(state), text) for state, text in cursor.messages or ()]
    return rows + [Event("message", int(number[1]), text) for number, text in told if number]
