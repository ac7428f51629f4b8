"""How SQL Server is asked: each belief on a connection of its own, in a database of our own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from vnuma.contract.suite import Answers, Differs, Judged, Verdict, ask
from vnuma.errors import VnumaError
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.failures import natives
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Row, UnexpectedAnswer, fetch, run, value
from vnuma.sqlserver.database import dataset_sql, ownership
from vnuma.sqlserver.instance.record import Event, events, kinds
from vnuma.words.provenance import scenario_of

DATABASE = "vnuma_contract"


@dataclass(frozen=True)
class AskedSql:
    """A connection to the server to ask, in a database of our own where possible."""

    connection: pyodbc.Connection
    major: int
    """12 for SQL Server 2014, 13 for 2016 and so on."""

    def rows(self, statement: str) -> list[Row]:
        """Every row of the first result."""
        return fetch(self.connection, statement)

    def value(self, statement: str) -> Any:
        """The first value. Raises Differs without a row."""
        found = self.rows(statement)
        if not found:
            raise Differs("no row")
        return found[0][0]

    def error(self, batch: str) -> int | None:
        """The number of the batch's first error; None without one."""
        return next((event.number for event in self.events(batch) if event.kind == "error"), None)

    def events(self, batch: str) -> list[Event]:
        """The parts of the batch's answer up to its first error."""
        return events(self.connection, batch)

    def kinds(self, view: str) -> dict[str, str]:
        """The columns that vnuma reads and the view has, with the Python type of each."""
        return kinds(self.connection, view)


def ask_sql(server: SqlServer) -> Answers:
    """Ask a server for every belief. Raises what `connect` raises when the server is unreachable,
    ForeignDatabase when the database's name is in use, and what prevents dropping our own.
    """
    judged: list[Judged] = []
    with connect(server) as connection:
        try:
            major = ownership.major_version(connection)
            simulated = scenario_of(str(value(connection, "SELECT @@VERSION AS banner")))
        except VnumaError:
            major, simulated = 0, None

        @contextmanager
        def opened() -> Iterator[AskedSql]:
            with connect(server, database) as own:
                yield AskedSql(own, major)

        with _own_database(connection) as database:
            ask("sql", opened, explain, judged)
    of = {
        "kind": "sql_server",
        "major_version": major,
        "driver": server.driver.kind,
        "own_database": database == DATABASE,
    }
    left = f"The database {DATABASE} was dropped again."
    if database != DATABASE:
        left = "The checks ran in master, because this login cannot create a database. Nothing was changed."
    return Answers(of, left, tuple(judged), simulated)


@contextmanager
def _own_database(connection: pyodbc.Connection) -> Iterator[str]:
    """The database to use: our own, or master on a server where we cannot create one."""
    made = False
    try:
        _drop(connection)  # left by an earlier run that was killed
        ownership.create(connection, DATABASE)
        made = True
    except ownership.ForeignDatabase as error:
        raise ownership.ForeignDatabase(
            error.what,
            fix=f"Rename or drop it yourself, then run the command again: only {DATABASE} is used.",
        ) from error
    except VnumaError:  # no permission, or another product: use master
        pass
    try:
        yield DATABASE if made else "master"
    finally:
        if made:
            _drop(connection)


def _drop(connection: pyodbc.Connection) -> None:
    run(connection, "USE master")
    if ownership.require_ours(connection, DATABASE):
        run(connection, f"DROP DATABASE {dataset_sql.identifier(DATABASE)}")


def explain(error: Exception) -> tuple[Verdict, str]:
    """An error's type or message number, without its text, which names the server."""
    if isinstance(error, UnexpectedAnswer):
        return Verdict.DIFFERS, "an answer of an unexpected form"
    if not isinstance(error, VnumaError):
        raise error
    numbers = natives(error.__cause__) if isinstance(error.__cause__, pyodbc.Error) else ()
    return Verdict.NOT_EVALUABLE, f"message {numbers[0]}" if numbers else type(error).__name__
