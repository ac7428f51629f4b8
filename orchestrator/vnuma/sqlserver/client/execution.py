"""How the statement just timed was run, read by a small statement after its batch.

The scheduler is the reading batch's: SQL Server prefers a session's last one, and the node belongs to the
connection. Everything else comes from the statement's row in sys.dm_exec_query_stats. A session's
waits are read before and after and subtracted, never cleared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Maybe

_VIEW = "sys.dm_exec_query_stats"
# last_rows exists since 2012; DOP and grant since 2016 (and late service packs of 2012 and 2014).
_STATISTICS = ("last_elapsed_time", "last_worker_time", "query_plan_hash", "last_dop", "last_grant_kb")
_HASH = re.compile(r"0x[0-9A-Fa-f]{16}")
_WHERE = (
    "FROM sys.dm_exec_requests AS r JOIN sys.dm_os_schedulers AS s ON s.scheduler_id = r.scheduler_id "
    "LEFT JOIN sys.dm_exec_query_stats AS q ON q.query_hash = {hash} WHERE r.session_id = @@SPID "
    "ORDER BY q.last_execution_time DESC"
)
_LATEST = 3
"""Most rows compared: sizes share a hash, and two executions may share a time (datetime: 3.3 ms)."""

NO_STATISTICS = (
    "not in sys.dm_exec_query_stats: its plan was not kept, or its time does not match the message's"
)

NOT_SHOWN = "sys.dm_exec_requests does not show this session: the login may not see it"


@dataclass(frozen=True)
class Execution:
    """One execution. Times in microseconds, `grant_kb` in kilobytes; None with `reason` if unknown.

    `node_id` is SQL Server's own node (including soft-NUMA), `cpu_id` the guest's CPU.
    """

    scheduler_id: int | None
    cpu_id: int | None
    node_id: int | None
    elapsed_us: int | None = None
    cpu_us: int | None = None
    plan_hash: str | None = None
    dop: int | None = None
    grant_kb: int | None = None
    reason: str | None = None


def known_statistics(connection: pyodbc.Connection) -> tuple[str, ...]:
    """The columns of interest in this version, read once per boot."""
    return query.present(connection, _VIEW, _STATISTICS)


def read(
    connection: pyodbc.Connection, query_hash: str, known: tuple[str, ...], elapsed_ms: int
) -> Execution:
    """How the query with that hash ran, whose message says `elapsed_ms`; `known` as `known_statistics`.

    Raises as a lost connection does.
    """
    wanted = ["r.scheduler_id", "s.cpu_id", "s.parent_node_id", *(f"q.{name}" for name in known)]
    found = query_hash if _HASH.fullmatch(query_hash) else "NULL"
    statement = f"SELECT TOP ({_LATEST}) {', '.join(wanted)} {_WHERE.format(hash=found)}"
    kinds = (Maybe(int),) * 3 + (Maybe(query.as_sent),) * len(known)
    rows = query.rows(connection, statement, *kinds)
    if not rows:
        return Execution(None, None, None, reason=NOT_SHOWN)
    scheduler, cpu, node = (_whole(value) for value in rows[0][:3])
    for row in rows:
        statistics: dict[str, Any] = dict(zip(known, row[3:], strict=True))
        if _agrees(statistics.get("last_elapsed_time"), elapsed_ms):
            return Execution(
                scheduler,
                cpu,
                node,
                elapsed_us=int(statistics["last_elapsed_time"]),
                cpu_us=_whole(statistics.get("last_worker_time")),
                plan_hash=_hex(statistics.get("query_plan_hash")),
                dop=_whole(statistics.get("last_dop")),
                grant_kb=_whole(statistics.get("last_grant_kb")),
            )
    return Execution(scheduler, cpu, node, reason=NO_STATISTICS)


def _agrees(elapsed_us: object, elapsed_ms: int) -> bool:
    """Whether it is the message's execution: equal within rounding and 1% (results sent after the plan)."""
    return isinstance(elapsed_us, int) and abs(elapsed_us / 1000 - elapsed_ms) <= 2 + elapsed_ms / 100


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _hex(value: object) -> str | None:
    return f"0x{value.hex().upper()}" if isinstance(value, bytes) else None


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
        rows = query.rows(
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
    spent = {name: query.increase(wait, before.get(name, none)) for name, wait in after.items()}
    return {name: asdict(wait) for name, wait in sorted(spent.items()) if wait != none}
