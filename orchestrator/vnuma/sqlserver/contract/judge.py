"""Check each assumption on a server, in a database of our own that is dropped afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vnuma.domain.contract.belief import Answers, Belief, DiffersError, Judged, NotEvaluableError, judged
from vnuma.errors import VnumaError
from vnuma.sqlserver.client.answers import UnexpectedAnswer
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.failures import natives
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run, value
from vnuma.sqlserver.client.sql_server import SqlServer
from vnuma.sqlserver.contract import messages as messages
from vnuma.sqlserver.contract import views as views
from vnuma.sqlserver.contract.belief import BELIEFS, DATABASE, Asked
from vnuma.sqlserver.database import dataset_sql, ownership
from vnuma.words.provenance import scenario_of


def judge(server: SqlServer) -> Answers:
    """Check every assumption on a server.

    One that cannot be checked is not evaluable, with the reason. Raises what `connect` raises when the server
    is unreachable, ForeignDatabase when the database's name is in use, and what prevents dropping our own.
    """
    with connect(server) as connection:
        try:
            major = ownership.major_version(connection)
            simulated = scenario_of(str(value(connection, "SELECT @@VERSION AS banner")))
        except VnumaError:
            major, simulated = 0, None
        with _own_database(connection) as database:
            beliefs = tuple(_judged(server, one, major, database) for one in BELIEFS)
        of = {
            "kind": "sql_server",
            "major_version": major,
            "driver": server.driver.kind,
            "own_database": database == DATABASE,
        }
        left = f"The database {DATABASE} was dropped again."
        if database != DATABASE:
            left = (
                "The checks ran in master, because this login cannot create a database. Nothing was changed."
            )
        return Answers(of, left, beliefs, simulated)


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


def _judged(server: SqlServer, one: Belief[Asked], major: int, database: str) -> Judged:
    """Each assumption has its own connection, so that none affects the next."""

    def look() -> str:
        if major < one.since:
            raise NotEvaluableError(f"assumed since version {one.since}, this is {major}")
        try:
            with connect(server, database) as connection:
                return one.look(Asked(connection, major))
        except UnexpectedAnswer as error:
            raise DiffersError("an answer of an unexpected form") from error

    return judged(one.id, look, _nameless)


def _nameless(error: VnumaError) -> str:
    """The error's type or message number, without its text, which names the server."""
    cause = error.__cause__
    numbers = natives(cause) if isinstance(cause, pyodbc.Error) else ()
    return f"message {numbers[0]}" if numbers else type(error).__name__
