"""Timing: SQL Server's own figures, or a failed sample with a reason."""

from __future__ import annotations

import time

import pytest

from tests.sqlserver.support import SMALL, LabFactory, listening, server_of
from vnuma.errors import ConnectionDropped, MeasurementFailed
from vnuma.sqlserver.client import execution
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run
from vnuma.sqlserver.client.statistics_time import Statement, Timing, timed
from vnuma.sqlserver.database import dataset
from vnuma.sqlserver.database.dataset import DatasetSpec
from vnuma.sqlserver.instance import plan
from vnuma.workloads.cross_join.settings import Form
from vnuma.workloads.cross_join.workload import cross_join
from vnuma.workloads.interface import Query

FORMS: tuple[Form, ...] = ("client", "server", "into")


def _time(connection: pyodbc.Connection, query: Query, timeout_s: float = 60) -> Timing:
    return timed(connection, query, timeout_s)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_timed_and_proves_its_rows(study: pyodbc.Connection, form: Form) -> None:
    """Both figures are the server's; the number of joined rows is n x n in every form."""
    began = time.perf_counter()
    timing = _time(study, cross_join(100, form))
    here_ms = (time.perf_counter() - began) * 1000

    assert timing.rows == 10_000
    assert timing.elapsed_ms > 0
    assert timing.cpu_ms >= 0
    assert timing.parse_elapsed_ms is not None
    assert 0 < timing.client_ms < here_ms, "the setup of a form is outside"


def test_the_clients_own_time_is_in_milliseconds(lab: LabFactory) -> None:
    """Of a statement that takes a known time."""
    with connect(listening(lab(time_scale=1))) as connection:
        began = time.perf_counter()
        timing = timed(connection, Statement("WAITFOR DELAY '00:00:00.050'"), 10)

    assert 50 <= timing.client_ms < (time.perf_counter() - began) * 1000


def test_a_form_can_be_timed_again_on_the_same_connection(study: pyodbc.Connection) -> None:
    """The temporary table of the into form is gone before the next iteration."""
    query = cross_join(20, "into")

    assert [_time(study, query).rows for _ in range(3)] == [400, 400, 400]


def test_a_table_left_by_an_interrupted_iteration_does_no_harm(study: pyodbc.Connection) -> None:
    """What the setup of the into form removes is what an earlier failure left behind."""
    query = cross_join(20, "into")
    run(study, query.sql)

    assert _time(study, query).rows == 400


def test_too_few_rows_are_a_failed_sample(study: pyodbc.Connection) -> None:
    """TOP (n) beyond the table gives fewer rows in silence; the count notices."""
    query = cross_join(250, "client")

    with pytest.raises(MeasurementFailed, match="processed 50,000 rows instead of 62,500"):
        _time(study, query)


def test_statements_after_a_timed_one_send_no_timings(study: pyodbc.Connection) -> None:
    """STATISTICS TIME is off again, so that later statements cost what they always cost."""
    _time(study, cross_join(10, "client"))

    with study.cursor() as cursor:
        cursor.execute("SELECT @@ERROR AS error_number, ROWCOUNT_BIG() AS row_count").fetchall()
        assert not cursor.messages
        assert not cursor.nextset()
        assert not cursor.messages


def test_a_statement_beyond_its_deadline_is_ended(lab: LabFactory) -> None:
    """The drivers do not interrupt a result that is being discarded; the sample fails with the reason."""
    running = lab(time_scale=1)
    server = listening(running)
    spec = DatasetSpec(transaction_history_rows=5000, sales_order_detail_rows=5000)
    with connect(server) as connection:
        dataset.prepare(connection, spec)
    with connect(server, spec.database) as connection:
        began = time.monotonic()

        with pytest.raises(MeasurementFailed):
            _time(connection, cross_join(3000, "client"), timeout_s=0.5)

        assert time.monotonic() - began < 100  # the whole result takes 170 s


def test_a_connection_cut_inside_a_result_is_dropped(lab: LabFactory) -> None:
    """An incomplete result is not a measurement, and the reason is the connection, not the statement."""
    running = lab(faults=[{"kind": "drop_mid_result", "vm": "sql16", "boot": 1, "rows": 5000}])
    server, spec = listening(running), SMALL
    with connect(server) as connection:
        dataset.prepare(connection, spec)

    with (
        connect(server, spec.database) as connection,
        pytest.raises(ConnectionDropped),
    ):
        _time(connection, cross_join(100, "client"))


def test_waiting_for_the_client_is_seen_in_the_waits(study: pyodbc.Connection) -> None:
    """ASYNC_NETWORK_IO tells how much of the client form is the client's; the server form has none."""
    before = execution.session_waits(study)
    _time(study, cross_join(150, "client"))
    between = execution.session_waits(study)
    _time(study, cross_join(150, "server"))
    after = execution.session_waits(study)

    client, server = execution.difference(before, between), execution.difference(between, after)
    assert client is not None
    assert client["ASYNC_NETWORK_IO"]["wait_ms"] > 0
    assert server is not None
    assert server.get("ASYNC_NETWORK_IO", {"wait_ms": 0})["wait_ms"] == 0


@pytest.mark.parametrize("form", FORMS)
def test_the_actual_plan_flags_the_spool_and_its_absence(study: pyodbc.Connection, form: Form) -> None:
    """The inner side is read from a spool in tempdb, unless the hint forbids it."""
    queries = [cross_join(20, form), cross_join(20, form, spool="avoided")]
    spooled, direct = (
        plan.actual_plan(study, query.sql, setup=query.setup, cleanup=query.cleanup) for query in queries
    )

    assert spooled.spools
    assert not direct.spools
    assert spooled.query_plan_hash != direct.query_plan_hash
    assert spooled.degree_of_parallelism == 1
    assert spooled.execution_modes


def test_plans_are_off_again_afterwards(study: pyodbc.Connection) -> None:
    """A plan in the timed run would be part of what it costs."""
    plan.actual_plan(study, cross_join(5, "client").sql)

    with study.cursor() as cursor:
        rows = cursor.execute("SELECT COUNT_BIG(*) AS n FROM Production.TransactionHistory").fetchall()
        assert [tuple(row) for row in rows] == [(300,)]
        assert not cursor.nextset(), "the plan would be another result"


def test_a_plan_that_does_not_come_in_time_is_a_failed_measurement(lab: LabFactory) -> None:
    """The extra run has a deadline too."""
    running = lab(time_scale=1)
    spec = DatasetSpec(transaction_history_rows=3000, sales_order_detail_rows=3000)
    with connect(listening(running)) as connection:
        dataset.prepare(connection, spec)

    with (
        connect(server_of(running), spec.database) as connection,
        pytest.raises(MeasurementFailed),
    ):
        plan.actual_plan(connection, cross_join(3000, "server").sql, timeout_s=0.5)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT v.n FROM (VALUES (1), (2)) AS v (n)", "several rows"),
        ("SELECT v.n FROM (VALUES (1), (2)) AS v (n) WHERE v.n > 2", "no row"),
        ("SELECT N'many' AS n", "a row that starts with 'many'"),
    ],
)
def test_only_one_row_with_a_whole_number_proves_rows(
    study: pyodbc.Connection, statement: str, said: str
) -> None:
    """The first of several rows proves nothing of the others."""
    with pytest.raises(MeasurementFailed, match=f"returned {said} instead of one row"):
        timed(study, Statement(statement, rows_from="result"), 10)


def test_rows_are_proven_by_the_first_result(study: pyodbc.Connection) -> None:
    """Whatever a call returns after it."""
    timing = timed(study, Statement("SELECT 3 AS n; SELECT 4 AS n", 3, "result", times="procedure"), 10)

    assert timing.rows == 3


def test_the_last_of_several_statements_does_not_pass_for_the_whole_call(study: pyodbc.Connection) -> None:
    """A cross join, and then a trifle: the trifle's time is not what the batch took."""
    batch = f"{cross_join(100, 'client').sql}; SELECT 1 AS one"

    with pytest.raises(MeasurementFailed):
        timed(study, Statement(batch, times="procedure"), 10)
