"""Small statements: run, fetch, translate errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from vnuma.errors import SqlFailed, SqlUnreachable, VnumaError
from vnuma.sqlserver.client.deadline import deadline, is_cut
from vnuma.sqlserver.client.deadline import where as where
from vnuma.sqlserver.client.failures import broken, failure
from vnuma.sqlserver.client.odbc import pyodbc

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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


Row = tuple[Any, ...]

Counts = TypeVar("Counts", bound="DataclassInstance")


def increase(after: Counts, before: Counts) -> Counts:
    """The difference of two readings, field by field."""
    return type(after)(*(now - then for now, then in zip(astuple(after), astuple(before), strict=True)))


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
