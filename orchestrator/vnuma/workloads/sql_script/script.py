"""A user's script with its variables replaced and its batches split, like in sqlcmd."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from vnuma.errors import InputError, MeasurementFailed
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run
from vnuma.workloads.sql_script.text import BYTE_ORDER_MARK, SEPARATOR, VARIABLE


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
