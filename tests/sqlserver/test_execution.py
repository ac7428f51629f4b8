"""Where and how a statement ran: read after it, in a statement of its own."""

from __future__ import annotations

import pytest

from vnuma.sqlserver.client import execution
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import value
from vnuma.sqlserver.client.statistics_time import Timing, timed
from vnuma.sqlserver.instance import plan
from vnuma.workloads.cross_join.workload import cross_join
from vnuma.workloads.interface import Query

REQUESTS = (
    "SELECT SUM(c.cntr_value) AS requests FROM sys.dm_os_performance_counters AS c "
    "WHERE c.counter_name = N'Batch Requests/sec' AND c.object_name LIKE N'%:SQL Statistics%'"
)


def read(study: pyodbc.Connection, query_hash: str, elapsed_ms: int) -> execution.Execution:
    """How the latest query of that hash ran here."""
    return execution.read(study, query_hash, execution.known_statistics(study), elapsed_ms)


def run(study: pyodbc.Connection, query: Query) -> Timing:
    """Time one query."""
    return timed(study, query, 20)


@pytest.mark.parametrize("form", ["client", "server"])
def test_an_execution_has_its_plan_place_and_microseconds(study: pyodbc.Connection, form: str) -> None:
    """The plan is that of the untimed run at another size; the microseconds agree with the message."""
    wide = cross_join(150, "client" if form == "client" else "server")
    narrow = cross_join(20, "client" if form == "client" else "server")
    seen = plan.actual_plan(study, narrow.sql)
    run(study, narrow)

    timing = run(study, wide)
    ran = read(study, seen.query_hash, timing.elapsed_ms)

    assert ran.elapsed_us is not None
    assert round(ran.elapsed_us / 1000) == timing.elapsed_ms
    assert (ran.plan_hash, ran.dop, ran.grant_kb) == (seen.query_plan_hash, 1, 0)
    assert ran.scheduler_id in range(16)
    assert ran.node_id in range(4)
    assert ran.reason is None


def test_statistics_of_another_execution_are_not_taken(study: pyodbc.Connection) -> None:
    """A time that is not the message's belongs to something else; the place is still known."""
    seen = plan.actual_plan(study, cross_join(20, "server").sql)
    timing = run(study, cross_join(20, "server"))

    ran = read(study, seen.query_hash, timing.elapsed_ms + 50)

    assert ran.elapsed_us is None
    assert ran.reason == execution.NO_STATISTICS
    assert ran.scheduler_id in range(16)


def test_without_a_plan_the_place_alone_is_known(study: pyodbc.Connection) -> None:
    """No hash, no statistics; and anything that is not a hash is not sent to the server."""
    assert read(study, "0x1; DROP TABLE x", 5).reason == execution.NO_STATISTICS


def test_reading_it_is_one_statement(study: pyodbc.Connection) -> None:
    """Against seconds of boot and join: what the server counts grows by one a reading."""
    query_hash = plan.actual_plan(study, cross_join(20, "server").sql).query_hash
    known = execution.known_statistics(study)
    before = int(value(study, REQUESTS))
    for _ in range(20):
        execution.read(study, query_hash, known, 5)

    assert int(value(study, REQUESTS)) - before == 20 + 1  # the look itself
