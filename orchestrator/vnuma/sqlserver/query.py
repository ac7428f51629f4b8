"""Small statements: run, fetch, errors translated."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Event
from typing import Any

from vnuma.errors import SqlUnreachable
from vnuma.sqlserver.deadline import deadline, server_of
from vnuma.sqlserver.failures import translate
from vnuma.sqlserver.odbc import pyodbc

Row = tuple[Any, ...]


def fetch(connection: pyodbc.Connection, statement: str, *parameters: str | int) -> list[Row]:
    """Every row of the first result set that has columns; an empty list if there is none."""
    found: list[Row] | None = None
    passed = Event()
    try:
        with connection.cursor() as cursor, deadline(connection, cursor) as passed:
            cursor.execute(statement, *parameters)
            more = True
            while more:
                if found is None and cursor.description:
                    found = [tuple(row) for row in cursor.fetchall()]
                more = bool(cursor.nextset())
    except pyodbc.Error as error:
        if not passed.is_set():
            raise translate(error, where(connection)) from error
    if passed.is_set():
        raise SqlUnreachable(
            f"{where(connection)}: SQL Server did not answer in time: {statement[:60]} ...",
            fix="Is it blocked by another session, or is the guest frozen?",
        )
    return found or []


def value(connection: pyodbc.Connection, statement: str, *parameters: str | int) -> Any:
    """The first column of the first row; None if there is no row."""
    rows = fetch(connection, statement, *parameters)
    return rows[0][0] if rows else None


def run(connection: pyodbc.Connection, statement: str, *parameters: str | int) -> None:
    """A statement whose rows nobody wants. Each result is passed, so that a late error is seen."""
    fetch(connection, statement, *parameters)


def run_all(connection: pyodbc.Connection, statements: Iterable[str]) -> None:
    """Statements one after the other, each a batch of its own."""
    for statement in statements:
        run(connection, statement)


def where(connection: pyodbc.Connection) -> str:
    """The server's name for messages."""
    return server_of(connection)
