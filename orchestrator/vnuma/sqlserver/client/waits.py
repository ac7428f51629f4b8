"""A session's waits: read before and after and subtracted, never cleared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.odbc import pyodbc

_INVALID_OBJECT = 208


@dataclass(frozen=True)
class Wait:
    """One wait type of a session: count, total milliseconds, and milliseconds of these for a scheduler."""

    tasks: int
    wait_ms: int
    signal_ms: int


SessionWaits = Mapping[str, Wait]


def session_waits(connection: pyodbc.Connection) -> SessionWaits | None:
    """This session's waits since it began (sys.dm_exec_session_wait_stats, SQL Server 2016 and later).

    None where the view does not exist: unknown, which is not "none".
    """
    try:
        rows = answers.rows(
            connection,
            "SELECT wait_type, waiting_tasks_count, wait_time_ms, signal_wait_time_ms "
            "FROM sys.dm_exec_session_wait_stats WHERE session_id = @@SPID",
            *(str, int, int, int),
        )
    except ServerError as error:
        if error.native == _INVALID_OBJECT:
            return None
        raise
    return {name: Wait(*counts) for name, *counts in rows}


def difference(before: SessionWaits | None, after: SessionWaits | None) -> dict[str, dict[str, int]] | None:
    """The waits between two readings by type, without unchanged types.

    None if one of the readings is unknown.
    """
    if before is None or after is None:
        return None
    none = Wait(0, 0, 0)
    spent = {name: _minus(wait, before.get(name, none)) for name, wait in after.items()}
    return {name: asdict(wait) for name, wait in sorted(spent.items()) if wait != none}


def _minus(after: Wait, before: Wait) -> Wait:
    return Wait(
        after.tasks - before.tasks, after.wait_ms - before.wait_ms, after.signal_ms - before.signal_ms
    )
