"""Small statements: run, fetch, translate errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from vnuma.errors import SqlUnreachable, VnumaError
from vnuma.sqlserver.client.deadline import deadline, is_cut
from vnuma.sqlserver.client.deadline import where as where
from vnuma.sqlserver.client.failures import broken, failure
from vnuma.sqlserver.client.odbc import pyodbc

Row = tuple[Any, ...]

_EVERY_ROW = 2**31 - 1


class DeadlinePassed(Exception):
    """The cursor's time is over and its connection was cut."""


def fetch(connection: pyodbc.Connection, statement: str, *parameters: str | int) -> list[Row]:
    """Every row of the first result set with columns; empty if there is none."""
    found: list[Row] | None = None
    with _executing(connection, statement, parameters) as cursor:
        for result in each_result(cursor):
            if found is None and result.columns:
                found = result.rows()
    return found or []


def value(connection: pyodbc.Connection, statement: str, *parameters: str | int) -> Any:
    """The first column of the first row; None without a row."""
    rows = fetch(connection, statement, *parameters)
    return rows[0][0] if rows else None


def run(connection: pyodbc.Connection, statement: str, *parameters: str | int) -> None:
    """Run a statement and read its rows to the end, so that a late error is raised."""
    with _executing(connection, statement, parameters) as cursor:
        for _ in each_result(cursor):
            pass


def run_all(connection: pyodbc.Connection, statements: Iterable[str]) -> None:
    """Run statements one after the other, each as its own batch."""
    for statement in statements:
        run(connection, statement)


class Result:
    """One result of an execution; `columns` are its column names, empty for a row count."""

    def __init__(self, cursor: pyodbc.Cursor) -> None:
        self._cursor = cursor
        self._ended = not cursor.description
        self.columns = tuple(str(column[0]) for column in cursor.description or ())

    def rows(self, most: int = _EVERY_ROW) -> list[Row]:
        """The next rows, at most that many."""
        found = [tuple(row) for row in self._cursor.fetchmany(most)]
        self._ended = len(found) < most
        return found

    def finish(self) -> None:
        """Pass the rows that are left, one by one inside the driver: no Python object is built.

        `nextset` alone would discard them at once, and with msodbcsql an error that follows them too. A
        result that has ended is left alone: FreeTDS would pass the messages behind it.
        """
        if not self._ended:
            self._cursor.skip(_EVERY_ROW)


def each_result(cursor: pyodbc.Cursor) -> Iterator[Result]:
    """Each result of an execution. Unread rows are skipped, and errors among them raised."""
    more = True
    while more:
        result = Result(cursor)
        yield result
        result.finish()
        more = bool(cursor.nextset())


@contextmanager
def open_cursor(connection: pyodbc.Connection, timeout_s: float | None = None) -> Iterator[pyodbc.Cursor]:
    """A cursor, closed before its deadline ends, since closing waits for the server too.

    A cursor left open with results pending would keep the connection busy. Raises DeadlinePassed instead of
    the cut's error, and SqlUnreachable for a broken connection: msodbcsql takes the end of a statement in a
    procedure for the end of the answer when nothing follows. Without `timeout_s` the connection's own
    statement timeout applies.
    """
    cursor = connection.cursor()
    try:
        with deadline(connection, cursor, timeout_s) as passed:
            try:
                yield cursor
            finally:
                with suppress(pyodbc.Error):  # nothing is left to close on a broken connection
                    cursor.close()
    except (pyodbc.Error, VnumaError) as error:  # replaces the driver's error for the cut
        if passed.is_set():
            raise DeadlinePassed from error
        if isinstance(error, VnumaError) and is_cut(connection):
            raise broken(connection, "before the end of the answer") from error
        raise
    if passed.is_set():
        raise DeadlinePassed
    if is_cut(connection):
        raise broken(connection, "before the end of the answer")


@contextmanager
def _executing(
    connection: pyodbc.Connection, statement: str, parameters: tuple[str | int, ...]
) -> Iterator[pyodbc.Cursor]:
    """A cursor that has executed the statement; errors are translated."""
    try:
        with open_cursor(connection) as cursor:
            cursor.execute(statement, *parameters)
            yield cursor
    except DeadlinePassed:
        raise SqlUnreachable(
            f"{where(connection)}: SQL Server did not answer in time: {statement[:60]} ...",
            fix="Check whether another session blocks it, or the guest is frozen.",
        ) from None
    except pyodbc.Error as error:
        raise failure(error, connection) from error
