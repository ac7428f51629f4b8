"""Time one statement on SQL Server's own clock, with its rows discarded inside the driver.

Discarding happens in the driver (`nextset`), because building Python objects would be some thirty
times slower than the join, and its time would be part of the statement's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from vnuma.errors import ConnectionDropped, MeasurementFailed, SqlUnreachable
from vnuma.sqlserver.deadline import deadline
from vnuma.sqlserver.dropped import ANSWER_S, CHECK, connection_lost
from vnuma.sqlserver.failures import sentence
from vnuma.sqlserver.messages import StatisticsTime, Times, parse_messages
from vnuma.sqlserver.odbc import pyodbc
from vnuma.sqlserver.query import run, run_all, where

RowsFrom = Literal["rowcount", "result", "none"]
TimesFrom = Literal["statement", "procedure"]

ROUNDING_MS = 2
"""By how much the times of a call and of a statement in it can contradict each other."""


@dataclass(frozen=True)
class Timing:
    """One execution. `cpu_ms` and `elapsed_ms` are SQL Server's, `client_ms` is this machine's.

    Parse and compile times are None if the server sent none, `rows` if nothing proves them. `result` is
    the single row of a statement whose `rows_from` is `result`.
    """

    cpu_ms: int
    elapsed_ms: int
    parse_cpu_ms: int | None
    parse_elapsed_ms: int | None
    client_ms: float
    rows: int | None
    result: tuple[Any, ...] | None = None


@dataclass
class _Outcome:
    """What one pass over a statement's results gave."""

    messages: list[tuple[str, str]]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    client_ms: float = 0.0


def timed(
    connection: pyodbc.Connection,
    statement: str,
    *,
    expected_rows: int | None,
    rows_from: RowsFrom,
    timeout_s: float,
    setup: Sequence[str] = (),
    cleanup: Sequence[str] = (),
    times_from: TimesFrom = "statement",
    clock: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Run one statement under SET STATISTICS TIME and return what it took.

    `rows_from` says where the number of rows is proven: by ROWCOUNT_BIG() for rows that were
    streamed or stored, by the first column of the only row for an aggregate, or nowhere (`none`); without
    `expected_rows` any number is right. `times_from` says which execution time is the statement's: the only
    one, or the last, which is a procedure call's whole time (each statement in it sends one as well).
    `setup` and `cleanup` run untimed before and after. Raises MeasurementFailed (timing absent or
    doubtful, wrong number of rows, an error, the deadline) or ConnectionDropped; a connection that failed
    is not to be used again.
    """
    try:
        run_all(connection, setup)
        run(connection, "SET STATISTICS TIME ON")
        outcome = _execute(connection, statement, rows_from, timeout_s, clock)
        error_number, row_count = _check(connection)
        run(connection, "SET STATISTICS TIME OFF")
        run_all(connection, cleanup)
    except SqlUnreachable as error:
        raise ConnectionDropped(
            f"The connection broke during a measurement: {error.what}", fix=error.fix
        ) from error
    if error_number:
        raise MeasurementFailed(f"{where(connection)}: the timed statement ended with error {error_number}.")
    rows = _rows(outcome, row_count, rows_from, expected_rows)
    times = parse_messages(outcome.messages)
    execution = _last(times) if times_from == "procedure" else _only(times)
    parse = _sum(times.parse_and_compile)
    return Timing(
        cpu_ms=execution.cpu_ms,
        elapsed_ms=execution.elapsed_ms,
        parse_cpu_ms=parse.cpu_ms if parse else None,
        parse_elapsed_ms=parse.elapsed_ms if parse else None,
        client_ms=outcome.client_ms,
        rows=rows,
        result=outcome.rows[0] if outcome.rows else None,
    )


def _execute(
    connection: pyodbc.Connection,
    statement: str,
    rows_from: RowsFrom,
    timeout_s: float,
    clock: Callable[[], float],
) -> _Outcome:
    outcome = _Outcome([])
    cursor = connection.cursor()
    with deadline(connection, cursor, timeout_s) as passed:
        started = clock()
        try:
            _drain(cursor, statement, outcome, keep_rows=rows_from == "result")
        except pyodbc.Error as error:
            if not passed.is_set():
                raise _failed(error, connection) from error
        outcome.client_ms = (clock() - started) * 1000
    with suppress(pyodbc.Error):  # nothing is left to close after a broken connection
        cursor.close()
    if passed.is_set():
        raise MeasurementFailed(
            f"{where(connection)}: the statement was ended after {timeout_s:g} s; it was not done by then.",
            fix="Raise workload.timeout_s, or measure smaller sizes.",
        )
    return outcome


def _drain(cursor: pyodbc.Cursor, statement: str, outcome: _Outcome, *, keep_rows: bool) -> None:
    """Execute and pass every result. Messages come with each of them, after the last one too."""
    cursor.execute(statement)
    outcome.messages += cursor.messages or []
    if keep_rows and cursor.description:
        outcome.rows = [tuple(row) for row in cursor.fetchmany(2)]  # the second shows that it is not alone
    while cursor.nextset():
        outcome.messages += cursor.messages or []
    outcome.messages += cursor.messages or []


def _check(connection: pyodbc.Connection) -> tuple[int, int]:
    """@@ERROR and ROWCOUNT_BIG() of the statement before: a driver can hide an error in a discarded result.

    This batch has timing messages of its own, which are read away with its results.
    """
    try:
        with connection.cursor() as cursor, deadline(connection, cursor, ANSWER_S):
            row = cursor.execute(CHECK).fetchone()
            while cursor.nextset():
                pass
    except pyodbc.Error as error:
        raise _failed(error, connection) from error
    if row is None:
        raise MeasurementFailed(f"{where(connection)}: the check after the timed statement gave no row.")
    return int(row[0]), int(row[1])


def _failed(error: pyodbc.Error, connection: pyodbc.Connection) -> MeasurementFailed | ConnectionDropped:
    """An error of the driver during a measurement: was the statement at fault, or the connection?"""
    lost = connection_lost(error, connection)
    return lost or MeasurementFailed(f"{where(connection)}: the timed statement failed: {sentence(error)}.")


def _rows(outcome: _Outcome, row_count: int, rows_from: RowsFrom, expected: int | None) -> int | None:
    if rows_from == "none":
        return None
    rows = row_count
    if rows_from == "result":
        rows = _counted(outcome.rows)
    if expected is not None and rows != expected:
        raise MeasurementFailed(
            f"The timed statement processed {rows:,} rows instead of {expected:,}.",
            fix="It reads other data than expected, or was cut short: look at its data and its plan.",
        )
    return rows


def _counted(rows: list[tuple[Any, ...]]) -> int:
    """The whole number that the only row of the first result begins with."""
    if len(rows) == 1 and type(rows[0][0]) is int:
        return rows[0][0]
    found = (
        f"a row that begins with {rows[0][0]!r}" if len(rows) == 1 else "several rows" if rows else "no row"
    )
    raise MeasurementFailed(
        f"The timed statement returned {found} instead of one row that begins with a whole number.",
        fix="Let it count, as in SELECT COUNT_BIG(*) ..., or prove its rows otherwise: workload.rows_from.",
    )


def _last(times: StatisticsTime) -> Times:
    """The last execution time: EXEC's own, after those of the statements in the procedure.

    A whole call takes as long as any statement in it, but for the rounding of either.
    """
    if not times.execution:
        return _only(times)
    *within, last = times.execution
    longest = max((one.elapsed_ms for one in within), default=0)
    if last.elapsed_ms + ROUNDING_MS < longest:
        raise MeasurementFailed(
            f"The last execution time, {last.elapsed_ms} ms, is shorter than one before it, {longest} ms: "
            "it is not that of the whole.",
            fix="Time one EXEC; put several statements into a procedure.",
        )
    return last


def _only(times: StatisticsTime) -> Times:
    """The one execution time. None at all is a failed sample: no other clock takes its place."""
    if len(times.execution) == 1:
        return times.execution[0]
    if not times.execution:
        raise MeasurementFailed(
            "SQL Server sent no execution time (message 3612) for the timed statement.",
            fix="Does STATISTICS TIME report on this statement? No other clock's time takes its place.",
        )
    raise MeasurementFailed(
        f"SQL Server sent {len(times.execution)} execution times (message 3612) for one statement.",
        fix="Does a trigger or a procedure run with it? Only a single statement can be timed.",
    )


def _sum(times: tuple[Times, ...]) -> Times | None:
    """Parse and compile time: an auto-parameterised statement sends two messages."""
    if not times:
        return None
    return Times(sum(item.cpu_ms for item in times), sum(item.elapsed_ms for item in times))
