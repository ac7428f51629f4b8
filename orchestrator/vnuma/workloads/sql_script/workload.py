"""The user's own T-SQL, timed and checked as the other workloads are.

Variables are replaced and batches are split as in sqlcmd.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from vnuma.domain.study.study import Dataset
from vnuma.errors import InputError, MeasurementFailed, undo_at_end
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run
from vnuma.sqlserver.database import ownership
from vnuma.workloads.interface import Bench, Document, Obstacle, Query, SystemUnderTest, Workload
from vnuma.workloads.query_bench import query_bench
from vnuma.workloads.sql_script.settings import BYTE_ORDER_MARK, SEPARATOR, SIZE, VARIABLE, SqlScript


def script_queries(settings: SqlScript) -> tuple[Query, ...]:
    """Every statement in every size, in the order of the study."""
    return tuple(
        Query(
            replaced(text, {**settings.parameters, SIZE: size}),
            settings.expected_rows.get(form),
            settings.rows_from,
            times=settings.times,
            workload="sql_script",
            size=size,
            form=form,
        )
        for size in settings.sizes
        for form, text in settings.statements.items()
    )


def _obstacles(connection: pyodbc.Connection, settings: SqlScript, dataset: Dataset) -> Iterator[Obstacle]:
    """A database that is not online, and batches that SQL Server's parser refuses."""
    if settings.database:
        state = ownership.state(connection, settings.database)
        if state != "ONLINE":
            found = f"is {state}" if state else "does not exist, or this login may not see it"
            yield Obstacle(
                f"workload.database: {settings.database} {found}.", "Name a database that is online."
            )
    for place, batch in _batches(settings):
        wrong = syntax_error(connection, batch)
        if wrong:
            yield Obstacle(f"workload.{place}: {wrong}", "Correct it; no part of it was run.")


def _prepare(system: SystemUnderTest) -> Document:
    """The study's own database, unless the script uses another."""
    if system.settings.database:
        return {}
    database = system.dataset.database
    with connect(system.server) as connection:
        return {"database": database, "changed": ownership.ensure(connection, database)}


@contextmanager
def _bench(system: SystemUnderTest) -> Iterator[Bench]:
    """Setup runs in the measuring session, so that its temporary tables exist; teardown in its own."""
    settings, values = system.settings, system.settings.parameters
    database = settings.database or system.dataset.database
    queries = script_queries(settings)
    with (
        undo_at_end(lambda: _tear_down(system, database)),
        connect(system.server, database) as connection,
    ):
        system.say("setup")
        run_script(connection, replaced(settings.setup, values), "setup")
        with query_bench(system, connection, queries) as bench:
            yield bench


def _tear_down(system: SystemUnderTest, database: str) -> None:
    settings = system.settings
    if settings.teardown.strip():
        with connect(system.server, database) as connection:
            run_script(connection, replaced(settings.teardown, settings.parameters), "teardown")


def _batches(settings: SqlScript) -> Iterator[tuple[str, str]]:
    """Everything that will be sent, with its place in the study file."""
    for place, text in (("setup", settings.setup), ("teardown", settings.teardown)):
        for batch in batches(replaced(text, settings.parameters)):
            yield place, batch
    smallest = min(settings.sizes)
    for query in script_queries(settings):
        if query.size == smallest:
            yield f"statements.{query.form}", query.sql


def batches(script: str) -> Iterator[str]:
    """The non-empty batches of a script, in order; `GO 5` repeats the one before it five times."""
    began = 0
    for line in SEPARATOR.finditer(script):
        yield from _several(script[began : line.start()], int(line["times"] or 1))
        began = line.end()
    yield from _several(script[began:], 1)


def _several(batch: str, times: int) -> Iterator[str]:
    text = batch.strip().removeprefix(BYTE_ORDER_MARK).strip()
    if text:
        yield from (text,) * times


def replaced(script: str, values: Mapping[str, object]) -> str:
    """The script with `$(name)` replaced by its value, as text. Raises InputError for a missing value."""

    def text(found: re.Match[str]) -> str:
        if found[1] not in values:
            raise InputError(f"$({found[1]}) has no value.", fix="Give it one in workload.parameters.")
        return str(values[found[1]])

    return VARIABLE.sub(text, script)


def syntax_error(connection: pyodbc.Connection, batch: str) -> str | None:
    """The error of SQL Server's parser for a batch, which is not run; None without one."""
    run(connection, "SET PARSEONLY ON")
    try:
        run(connection, batch)
    except ServerError as error:
        return error.what
    finally:
        run(connection, "SET PARSEONLY OFF")
    return None


def run_script(connection: pyodbc.Connection, script: str, what: str) -> None:
    """Run every batch. Raises MeasurementFailed with the script (`what`) and the failed batch."""
    for number, batch in enumerate(batches(script), 1):
        try:
            run(connection, batch)
        except ServerError as error:
            raise MeasurementFailed(
                f"Batch {number} of workload.{what} failed: {error.what}",
                fix=error.fix or "Correct the script.",
            ) from error


WORKLOAD = Workload(settings=SqlScript, obstacles=_obstacles, prepare=_prepare, bench=_bench)
