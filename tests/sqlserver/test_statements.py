"""Statements: no error is lost, none is called a lost connection, and a lost connection is called that."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import replace

import pyodbc
import pytest

from tests.support.cut import Forwarder, How
from vnuma.errors import ConnectionDropped, MeasurementFailed, SqlFailed, SqlUnreachable
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.query import run, value
from vnuma.sqlserver.client.statistics_time import Statement, timed
from vnuma.sqlserver.instance import plan

FAILING = "SELECT 10 / (3 - v.n) AS q FROM (VALUES (1), (2), (3), (4)) AS v (n)"
"""Two rows, then an error."""

AFTERWARDS = ("SELECT 1 AS one", "DECLARE @a int; SET @a = 1", "SELECT 1 AS one; SELECT 2 AS two")
"""What sets @@ERROR to 0 again."""

OWN_ERROR = "RAISERROR (N'sold out', 16, 1); SELECT v.n FROM (VALUES (1), (2)) AS v (n)"
"""An error with results pending behind it."""


@pytest.fixture
def opened(any_server: SqlServer) -> Iterator[pyodbc.Connection]:
    """A connection to master by each driver."""
    with connect(any_server) as connection:
        yield connection


@pytest.fixture
def forwarder(any_server: SqlServer) -> Iterator[Forwarder]:
    """Something between client and server that cuts connections."""
    with Forwarder(any_server.host, any_server.port) as between:
        yield between


@pytest.mark.parametrize("afterwards", AFTERWARDS)
@pytest.mark.parametrize("rows_from", ["rowcount", "none", "result"])
def test_a_procedure_that_fails_in_the_middle_is_no_valid_sample(
    opened: pyodbc.Connection, rows_from: str, afterwards: str
) -> None:
    """Its call's time is of work that was not done, wherever its rows are counted."""
    batch = f"SELECT 5 AS five; {FAILING}; {afterwards}".replace("'", "''")

    with pytest.raises(MeasurementFailed, match="Divide by zero"):
        timed(
            opened,
            Statement(
                f"EXEC sys.sp_executesql N'{batch}'",
                rows_from=rows_from,  # type: ignore[arg-type]
                times="procedure",
            ),
            20,
        )


@pytest.mark.parametrize("afterwards", AFTERWARDS)
def test_what_is_called_one_statement_has_one_result(opened: pyodbc.Connection, afterwards: str) -> None:
    """@@ERROR is of the last statement: it proves nothing of an earlier one."""
    with pytest.raises(MeasurementFailed):
        timed(opened, Statement(f"{FAILING}; {afterwards}", statements="one"), 20)


def test_a_second_result_of_one_statement_is_refused(opened: pyodbc.Connection) -> None:
    """Two statements that succeed: the first one's @@ERROR would be lost."""
    with pytest.raises(MeasurementFailed):
        timed(opened, Statement("SELECT 1 AS one; SELECT 2 AS two", statements="one", times="procedure"), 20)


def test_a_plan_run_that_fails_is_an_error_and_leaves_plans_off(opened: pyodbc.Connection) -> None:
    """The statements after it return their own results alone."""
    with pytest.raises(SqlFailed):
        plan.actual_plan(opened, f"{FAILING}; SELECT 1 AS one")

    with opened.cursor() as cursor:
        cursor.execute("SELECT 1 AS one").fetchall()
        assert not cursor.nextset()


def test_a_connection_takes_the_next_statement_while_an_error_is_handled(opened: pyodbc.Connection) -> None:
    """What the failed batch left unread is gone with it."""
    try:
        run(opened, OWN_ERROR)
    except SqlFailed:
        assert value(opened, "SELECT 7 AS seven") == 7
    else:
        pytest.fail("the batch must fail")


@pytest.mark.parametrize("how", ["end", "reset"])
def test_a_cut_between_statements_is_a_lost_connection(
    any_server: SqlServer, forwarder: Forwarder, how: How
) -> None:
    """With a FIN or a RST: the next statement says so, and where to look."""
    with connect(replace(any_server, port=forwarder.port)) as connection:
        run(connection, "SELECT 1 AS one")
        forwarder.cut(how)

        with pytest.raises(SqlUnreachable) as lost:
            run(connection, "SELECT 1 AS one")

    assert lost.value.fix is not None


@pytest.mark.parametrize("how", ["end", "reset"])
@pytest.mark.parametrize("after", [0, 1, 40, 4000])
def test_a_cut_inside_an_answer_is_a_lost_connection(
    any_server: SqlServer, forwarder: Forwarder, how: How, after: int
) -> None:
    """Wherever the answer ends, and whether or not it is timed."""
    many = "SELECT a.name FROM sys.all_columns AS a"
    server = replace(any_server, port=forwarder.port)
    with connect(server) as connection:
        forwarder.cut_after(after, how)
        with pytest.raises(SqlUnreachable):
            run(connection, many)

    with connect(server) as connection:
        run(connection, "SET STATISTICS TIME ON")
        forwarder.cut_after(after, how)
        with pytest.raises(ConnectionDropped):
            timed(connection, Statement(many), 20)


def test_rows_that_nobody_wants_are_not_built(opened: pyodbc.Connection) -> None:
    """A statement that is merely run takes no memory for its rows."""
    digits = "(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))"
    tables = " CROSS JOIN ".join(f"{digits} AS {name} (d)" for name in "abcde")
    run(opened, f"SELECT a.d FROM {digits} AS a (d)")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    run(opened, f"SELECT a.d, REPLICATE(N'x', 200) AS text FROM {tables}")

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000, "KB; 100,000 rows are 60 MB"
