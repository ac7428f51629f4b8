"""The bench of every workload that times single statements on SQL Server's own clocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Literal

from vnuma.domain.workloads.settings import COARSE_BELOW_MS, ClockChoice
from vnuma.errors import MeasurementFailed, PrivilegeMissing, SqlFailed
from vnuma.sqlserver.client import execution
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.execution import NO_STATISTICS, Execution
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.statistics_time import Timing, timed
from vnuma.sqlserver.instance import plan, server
from vnuma.workloads.interface import Bench, Query, Reading, SystemUnderTest

_Clock = Literal["messages", "query_stats"]
_SCOPE = "clock"


ROWS = "rows"
"""Scope of each statement's row count, if the study does not state it."""


def choose(wanted: ClockChoice, timing: Timing, ran: Execution) -> _Clock:
    """The study's choice; `auto` takes microseconds for short executions, if the server has them."""
    if wanted != "auto":
        return wanted
    short = timing.elapsed_ms < COARSE_BELOW_MS
    return "query_stats" if short and ran.elapsed_us is not None else "messages"


def timed_by(
    timing: Timing, clock: _Clock, ran: Execution, waits: Mapping[str, Mapping[str, int]] | None
) -> Reading:
    """The reading with its clock's times and everything known about the execution.

    Raises MeasurementFailed when the clock has no time: the other one never replaces it.
    """
    reading = Reading(**{**vars(timing), "waits": waits, "execution": {"clock": clock, **asdict(ran)}})
    if clock == "messages":
        return reading
    if ran.elapsed_us is None:
        raise MeasurementFailed(
            f"The execution has no time in microseconds: {ran.reason or NO_STATISTICS}.",
            fix="Check whether something evicts plans. Otherwise set workload.clock: messages.",
        )
    messages = {"message_elapsed_ms": timing.elapsed_ms, "message_cpu_ms": timing.cpu_ms}
    return replace(
        reading,
        elapsed_ms=ran.elapsed_us / 1000,
        cpu_ms=None if ran.cpu_us is None else ran.cpu_us / 1000,
        execution={**(reading.execution or {}), **messages},
    )


@contextmanager
def dataset_bench(system: SystemUnderTest, queries: tuple[Query, ...]) -> Iterator[Bench]:
    """The bench of queries on the study's own database."""
    with (
        connect(system.server, system.dataset.database) as connection,
        query_bench(system, connection, queries) as bench,
    ):
        yield bench


@contextmanager
def query_bench(
    system: SystemUnderTest, connection: pyodbc.Connection, queries: tuple[Query, ...]
) -> Iterator[Bench]:
    """Times these statements. Stores each form's plan before, and the memory placement afterwards."""
    hashes = _record_plans(system, connection, queries)
    known = execution.known_statistics(connection)
    by_place = {(query.size, query.form): query for query in queries}
    clocks: dict[str, _Clock] = {
        key: "query_stats" if value == "query_stats" else "messages"
        for key, value in system.remembered(_SCOPE).items()
    }

    def run(size: int, form: str) -> Reading:
        """One execution, with its waits and how it ran. A query's first one in the run decides its clock."""
        query, key = by_place[size, form], f"{form}/{size}"
        before = execution.session_waits(connection)
        timing = timed(connection, query, system.settings.timeout_s)
        if query.expected_rows is None and query.rows_from != "none":
            same_rows(system, key, timing.rows)
        spent = execution.difference(before, execution.session_waits(connection))
        ran = execution.read(connection, hashes[form], known, timing.elapsed_ms)
        if key not in clocks:
            clocks[key] = choose(system.settings.clock, timing, ran)
            system.remember(_SCOPE, {key: clocks[key]})
        return timed_by(timing, clocks[key], ran, spent)

    yield run
    system.record("memory", {"xtp_pages_kb": server.xtp_pages_kb(connection)})


def same_rows(system: SystemUnderTest, key: str, rows: int | None) -> None:
    """The first execution in the run sets the row count. Raises MeasurementFailed for others."""
    first = system.remembered(ROWS).get(key)
    if first is None:
        system.remember(ROWS, {key: rows})
    elif first != rows:
        raise MeasurementFailed(
            f"The statement {key} gave {rows:,} rows; its first execution in this run gave {first:,}.",
            fix="Let setup leave the same data on every boot, or set expected_rows.",
        )


def _record_plans(
    system: SystemUnderTest, connection: pyodbc.Connection, queries: tuple[Query, ...]
) -> dict[str, str]:
    """Record the actual plan of every form, from an untimed run of the smallest size, once per cell.

    Returns the hash of each form's query, which its sizes share; empty without a plan.
    """
    smallest = min(query.size for query in queries)
    hashes = dict.fromkeys((query.form for query in queries), "")
    for query in queries if system.settings.plan == "actual" else ():
        if query.size == smallest:
            document = _plan_document(connection, query)
            hashes[query.form] = str(document.get("query_hash", ""))
            system.record("plan", {query.form: document})
    return hashes


def _plan_document(connection: pyodbc.Connection, query: Query) -> dict[str, object]:
    """The plan as additional evidence: without it the timing is still valid, and the reason is stored."""
    try:
        return asdict(plan.actual_plan(connection, query.sql, setup=query.setup, cleanup=query.cleanup))
    except (MeasurementFailed, PrivilegeMissing, SqlFailed) as error:
        return {"not_evaluated": error.what}
