"""Asking a server whether each belief holds there, in a database of our own that is dropped afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from vnuma.errors import VnumaError
from vnuma.sqlserver.client.answers import UnexpectedAnswer
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.failures import natives
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run
from vnuma.sqlserver.contract import messages as messages
from vnuma.sqlserver.contract import views as views
from vnuma.sqlserver.contract.belief import (
    BELIEFS,
    DATABASE,
    Asked,
    Belief,
    DiffersError,
    NotEvaluableError,
    Verdict,
)
from vnuma.sqlserver.database import dataset_sql, ownership

SCHEMA = "vnuma/contract/1"


@dataclass(frozen=True)
class Judged:
    """What came of one belief: `seen` has neither names nor addresses."""

    belief: Belief
    verdict: Verdict
    seen: str


@dataclass(frozen=True)
class Answers:
    """What one server answered to every belief, in their order. `major` is 0 where it tells no version."""

    major: int
    driver: str
    own_database: bool
    beliefs: tuple[Judged, ...]

    def count(self, verdict: Verdict) -> int:
        """How many beliefs have this verdict."""
        return sum(one.verdict is verdict for one in self.beliefs)

    @property
    def left(self) -> str:
        """What is left on the server, in words."""
        if not self.own_database:
            return "Asked in master: this login can make no database. Nothing was changed."
        return f"The database {DATABASE} was dropped again."

    def document(self) -> dict[str, object]:
        """For a file to send in."""
        return {
            "schema": SCHEMA,
            "major_version": self.major,
            "driver": self.driver,
            "own_database": self.own_database,
            "beliefs": {one.belief.id: {"verdict": one.verdict, "seen": one.seen} for one in self.beliefs},
        }


def judge(server: SqlServer) -> Answers:
    """Ask a server about every belief.

    A belief that cannot be asked is not evaluable, with the reason. Raises what `connect` raises when the
    server cannot be reached at all, ForeignDatabase when the database's name is somebody else's, and
    whatever keeps our own from being dropped.
    """
    with connect(server) as connection:
        try:
            major = ownership.major_version(connection)
        except VnumaError:
            major = 0
        with _own_database(connection) as database:
            beliefs = tuple(_judged(server, one, major, database) for one in BELIEFS.values())
        return Answers(major, server.driver.kind, database == DATABASE, beliefs)


@contextmanager
def _own_database(connection: pyodbc.Connection) -> Iterator[str]:
    """The database to ask in: our own, or master on a server that does not let us make one."""
    made = False
    try:
        _drop(connection)  # what an earlier run that was killed has left
        ownership.create(connection, DATABASE)
        made = True
    except ownership.ForeignDatabase:
        raise
    except VnumaError:  # the right is missing, or the server is of another make: master has to do
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


def _judged(server: SqlServer, one: Belief, major: int, database: str) -> Judged:
    """Each belief has a connection of its own: what one leaves behind means nothing to the next."""
    if major < one.since:
        return Judged(one, Verdict.NOT_EVALUABLE, f"believed since version {one.since}, this is {major}")
    try:
        with connect(server, database) as connection:
            return Judged(one, Verdict.HELD, one.look(Asked(connection, major)))
    except UnexpectedAnswer:
        return Judged(one, Verdict.DIFFERS, "an answer of another shape")
    except DiffersError as seen:
        return Judged(one, Verdict.DIFFERS, str(seen))
    except NotEvaluableError as why:
        return Judged(one, Verdict.NOT_EVALUABLE, str(why))
    except VnumaError as error:
        return Judged(one, Verdict.NOT_EVALUABLE, _nameless(error))


def _nameless(error: VnumaError) -> str:
    """What kind of error it was, by message number where there is one: its text names the server."""
    cause = error.__cause__
    numbers = natives(cause) if isinstance(cause, pyodbc.Error) else ()
    return f"message {numbers[0]}" if numbers else type(error).__name__
