"""Time one statement on SQL Server's own clock, discarding its rows inside the driver.

Building Python objects would be some thirty times slower than the join, and would count as the statement's
time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from vnuma.domain.workloads.metric import Reading
from vnuma.errors import MeasurementFailed, SqlUnreachable
from vnuma.sqlserver.client.failures import failure, sentence, while_measuring
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import DeadlinePassed, each_result, open_cursor, run, run_all, where

EXECUTION = 3612
PARSE_AND_COMPILE = 3613

_STATE = re.compile(r"\((-?\d{1,10})\)\s*$")
_DIGITS = re.compile(r"\d+")
_FIGURE = re.compile(r"=[^\S\n]*(\d{1,12})(?!\d)")
"""At most 12 digits: 31 years in milliseconds."""
_SHOWN = 200


@dataclass(frozen=True)
class Times:
    """CPU and elapsed time in milliseconds, as SQL Server reported them."""

    cpu_ms: int
    elapsed_ms: int


def parse_messages(messages: Iterable[tuple[str, str]]) -> tuple[list[Times], list[Times]]:
    """The times of execution, and of parsing and compiling, in a batch's messages, in order.

    Messages are pairs such as `("[01000] (3612)", text)`. Raises MeasurementFailed for a timing message with
    ambiguous figures.
    """
    found: dict[int, list[Times]] = {EXECUTION: [], PARSE_AND_COMPILE: []}
    for state, text in messages:
        match = _STATE.search(state)
        if match and int(match[1]) in found:
            found[int(match[1])].append(read_times(text))
    return found[EXECUTION], found[PARSE_AND_COMPILE]


def read_times(text: str) -> Times:
    """The two figures of a message: each follows an equals sign, without any number after it.

    A thousands separator, a decimal point or a third figure raises MeasurementFailed, since a wrong number is
    worse than none.
    """
    figures = [match.span(1) for match in _FIGURE.finditer(text)]
    last_two = [match.span() for match in _DIGITS.finditer(text)][-2:]
    if len(figures) != 2 or figures != last_two:
        shown = " ".join(text.split())[:_SHOWN]
        raise MeasurementFailed(
            f"SQL Server's timing message cannot be read with certainty: {shown!r}.",
            fix="Set the login's default language to us_english, and report the message.",
        )
    cpu, elapsed = (int(text[start:end]) for start, end in figures)
    return Times(cpu, elapsed)


RowsFrom = Literal["rowcount", "result", "none"]
TimesFrom = Literal["statement", "procedure"]
Statements = Literal["one", "any"]

CHECK = "SELECT @@ERROR AS error_number, ROWCOUNT_BIG() AS row_count"
ANSWER_S = 30.0
"""Time limit for the check after a statement, in seconds: a server that has just finished answers at once."""

ROUNDING_MS = 2
"""How far the times of a call and of a statement in it may contradict each other, in milliseconds."""


@dataclass(frozen=True)
class Statement:
    """One statement to time, and how to prove that it did all of its work.

    `rows_from` says how the number of rows is proven: by ROWCOUNT_BIG() for rows that were streamed or stored
    (`rowcount`), by the first column of the only row for an aggregate (`result`), or not at all (`none`);
    without `expected_rows` any number is accepted. `setup` and `cleanup` run untimed before and after.
    `times` selects the execution time: the only one, or the last, which is a procedure call's total (each
    statement in it sends one as well). `statements`: `one` only where vnuma itself wrote a single statement
    with a single result, which the driver then discards as a whole, 13% (msodbcsql) to 21% (FreeTDS) faster
    than row by row: see `_discard`.
    """

    sql: str
    expected_rows: int | None = None
    rows_from: RowsFrom = "none"
    setup: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()
    times: TimesFrom = "statement"
    statements: Statements = "any"


@dataclass(frozen=True, kw_only=True)
class Timing(Reading):
    """One execution of a statement: SQL Server's execution times and this machine's own."""

    cpu_ms: int
    elapsed_ms: int
    client_ms: float


@dataclass
class _Outcome:
    """The outcome of reading a statement's results."""

    messages: list[tuple[str, str]]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    client_ms: float = 0.0


def timed(
    connection: pyodbc.Connection,
    statement: Statement,
    timeout_s: float,
) -> Timing:
    """Run one statement under SET STATISTICS TIME and return its times.

    Raises MeasurementFailed (timing missing or ambiguous, wrong number of rows, an error, the deadline) or
    ConnectionDropped; do not use the connection after an error.
    """
    try:
        run_all(connection, statement.setup)
        run(connection, "SET STATISTICS TIME ON")
        outcome = _execute(connection, statement, timeout_s)
        error_number, row_count = _check(connection)
        run(connection, "SET STATISTICS TIME OFF")
        run_all(connection, statement.cleanup)
    except SqlUnreachable as error:
        raise while_measuring(error) from error
    if error_number:
        raise MeasurementFailed(f"{where(connection)}: the timed statement ended with error {error_number}.")
    rows = _rows(outcome, row_count, statement.rows_from, statement.expected_rows)
    executions, parses = parse_messages(outcome.messages)
    several = statement.times == "procedure" and statement.statements == "any"
    execution = _last(executions) if several else _only(executions)
    return Timing(
        cpu_ms=execution.cpu_ms,
        elapsed_ms=execution.elapsed_ms,
        # An auto-parameterised statement sends two messages.
        parse_cpu_ms=sum(parse.cpu_ms for parse in parses) if parses else None,
        parse_elapsed_ms=sum(parse.elapsed_ms for parse in parses) if parses else None,
        client_ms=outcome.client_ms,
        rows=rows,
    )


def _execute(connection: pyodbc.Connection, statement: Statement, timeout_s: float) -> _Outcome:
    outcome, keep = _Outcome([]), statement.rows_from == "result"
    try:
        with open_cursor(connection, timeout_s) as cursor:
            started = time.perf_counter()
            cursor.execute(statement.sql)
            if keep or statement.statements != "one":
                _read_all(cursor, outcome, keep=keep)
            else:
                _discard(cursor, outcome)
            outcome.client_ms = (time.perf_counter() - started) * 1000
    except DeadlinePassed:
        raise MeasurementFailed(
            f"{where(connection)}: the statement was stopped after {timeout_s:g} s, before it had finished.",
            fix="Raise workload.timeout_s, or measure smaller sizes.",
        ) from None
    except pyodbc.Error as error:
        raise _failed(error, connection) from error
    return outcome


def _read_all(cursor: pyodbc.Cursor, outcome: _Outcome, *, keep: bool) -> None:
    """Read every result, so that no error is lost; `keep` the first one's first rows.

    Messages come with each result.
    """
    for number, result in enumerate(each_result(cursor)):
        outcome.messages += cursor.messages or []
        if keep and number == 0 and result.columns:
            outcome.rows = result.rows(2)  # two rows show that there is more than one
    outcome.messages += cursor.messages or []


def _discard(cursor: pyodbc.Cursor, outcome: _Outcome) -> None:
    """Discard the only result at once. An error after its rows is then in @@ERROR (`_check`).

    A second statement would reset @@ERROR, so a second result is refused.
    """
    rows = bool(cursor.description)
    outcome.messages += cursor.messages or []
    while cursor.nextset():
        outcome.messages += cursor.messages or []
        if rows and cursor.description:
            raise MeasurementFailed(
                "The timed statement gave several results instead of one.",
                fix="Time it as a batch of several statements.",
            )
        rows = rows or bool(cursor.description)
    outcome.messages += cursor.messages or []


def _check(connection: pyodbc.Connection) -> tuple[int, int]:
    """@@ERROR and ROWCOUNT_BIG() of the previous statement, with nothing sent in between.

    This batch's own timing messages are discarded with its results.
    """
    rows: list[tuple[Any, ...]] = []
    try:
        with open_cursor(connection, ANSWER_S) as cursor:
            cursor.execute(CHECK)
            for result in each_result(cursor):
                rows += result.rows() if result.columns else []
    except DeadlinePassed:
        raise MeasurementFailed(
            f"{where(connection)}: the check after the timed statement took over {ANSWER_S:g} s.",
            fix="Check whether the guest is frozen, or SQL Server is out of workers.",
        ) from None
    except pyodbc.Error as error:
        raise _failed(error, connection) from error
    if len(rows) != 1 or not all(isinstance(number, int) for number in rows[0]):
        raise MeasurementFailed(f"{where(connection)}: the check after the timed statement gave {rows}.")
    return int(rows[0][0]), int(rows[0][1])


def _failed(error: pyodbc.Error, connection: pyodbc.Connection) -> MeasurementFailed | SqlUnreachable:
    """The error for a driver's error during a measurement: failed statement or lost connection."""
    means = failure(error, connection)
    if isinstance(means, SqlUnreachable):
        return means
    return MeasurementFailed(f"{where(connection)}: the timed statement failed: {sentence(error)}.")


def _rows(outcome: _Outcome, row_count: int, rows_from: RowsFrom, expected: int | None) -> int | None:
    if rows_from == "none":
        return None
    rows = row_count
    if rows_from == "result":
        rows = _counted(outcome.rows)
    if expected is not None and rows != expected:
        raise MeasurementFailed(
            f"The timed statement processed {rows:,} rows instead of {expected:,}.",
            fix="It reads unexpected data, or was cut short: check its data and its plan.",
        )
    return rows


def _counted(rows: list[tuple[Any, ...]]) -> int:
    """The integer that starts the only row of the first result."""
    if len(rows) == 1 and type(rows[0][0]) is int:
        return rows[0][0]
    found = (
        f"a row that starts with {rows[0][0]!r}" if len(rows) == 1 else "several rows" if rows else "no row"
    )
    raise MeasurementFailed(
        f"The timed statement returned {found} instead of one row that starts with an integer.",
        fix="Let it count, as in SELECT COUNT_BIG(*) ..., or prove its rows otherwise: workload.rows_from.",
    )


def _last(times: Sequence[Times]) -> Times:
    """The last execution time: EXEC's own, after those of the procedure's statements.

    A call takes at least as long as any statement in it, apart from rounding.
    """
    if not times:
        return _only(times)
    *within, last = times
    longest = max((one.elapsed_ms for one in within), default=0)
    if last.elapsed_ms + ROUNDING_MS < longest:
        raise MeasurementFailed(
            f"The last execution time, {last.elapsed_ms} ms, is shorter than an earlier one, {longest} "
            "ms: it is not the time of the whole.",
            fix="Time one EXEC; put several statements into a procedure.",
        )
    return last


def _only(times: Sequence[Times]) -> Times:
    """The only execution time. Without one the sample fails: no other clock replaces it."""
    if len(times) == 1:
        return times[0]
    if not times:
        raise MeasurementFailed(
            "SQL Server sent no execution time (message 3612) for the timed statement.",
            fix=(
                "Check that STATISTICS TIME reports this statement. vnuma does not substitute another "
                "clock's time."
            ),
        )
    raise MeasurementFailed(
        f"SQL Server sent {len(times)} execution times (message 3612) for one statement.",
        fix="Check whether a trigger or a procedure runs with it: only a single statement can be timed.",
    )
