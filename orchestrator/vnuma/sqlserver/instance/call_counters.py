"""SQL Server's own counts of calls, on its clock: for the instance and for one procedure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vnuma.errors import MeasurementFailed, PrivilegeMissing
from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.answers import Maybe
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.database import dataset_sql as sql

# One statement, so that clock and counts are of the same time. execution_count belongs to cached plans: SUM,
# since sessions with other SET options have their own plans.
# https://learn.microsoft.com/sql/relational-databases/system-dynamic-management-views/sys-dm-exec-procedure-stats-transact-sql
_COUNTS = (
    "SELECT SYSUTCDATETIME() AS at, i.ms_ticks, "
    "i.process_kernel_time_ms + i.process_user_time_ms AS cpu_ms, "
    "(SELECT SUM(s.execution_count) FROM sys.dm_exec_procedure_stats AS s "
    "WHERE s.database_id = DB_ID() AND s.object_id = OBJECT_ID({name}, N'P')) AS executions, "
    "(SELECT SUM(c.cntr_value) FROM sys.dm_os_performance_counters AS c "
    "WHERE c.counter_name = N'Batch Requests/sec' AND c.object_name LIKE N'%:SQL Statistics%') AS requests "
    "FROM sys.dm_os_sys_info AS i"
)
_SCHEDULERS = (
    "SELECT i.ms_ticks, s.scheduler_id, s.total_cpu_usage_ms FROM sys.dm_os_schedulers AS s "
    "CROSS JOIN sys.dm_os_sys_info AS i WHERE s.status = N'VISIBLE ONLINE'"
)
_ENDPOINT = (
    "SELECT net_transport, client_net_address, local_net_address FROM sys.dm_exec_connections "
    "WHERE session_id = {session}"
)
_LOOPBACK = ("127.", "::1", "<local machine>")


@dataclass(frozen=True)
class SchedulerTimes:
    """CPU time of each scheduler in ms, and the tick count at that time."""

    ms_ticks: int
    used_ms: dict[int, int]


@dataclass(frozen=True)
class ServerCounts:
    """One reading of the server: its clock, its process's CPU time, and its counts.

    `schedulers` is None before SQL Server 2016 SP2, where their CPU time is unknown.
    """

    at: datetime
    ms_ticks: int
    cpu_ms: int
    executions: int
    requests: int
    schedulers: SchedulerTimes | None


@dataclass(frozen=True)
class Endpoint:
    """A connection's client, as the server sees it."""

    transport: str
    client: str
    server: str

    @property
    def same_host(self) -> bool:
        """Whether the caller runs in the guest itself, so that no network card is involved."""
        local = self.client == self.server or self.client.startswith(_LOOPBACK)
        return local or self.transport.casefold() == "shared memory"


def counts(connection: pyodbc.Connection, form: str, *, schedulers: bool) -> ServerCounts:
    """Read the counts; the connection's current database has the procedure.

    `schedulers`: whether this version counts their CPU time (`counts_schedulers`). Raises MeasurementFailed
    when the server no longer has the procedure's executions.
    """
    name = sql.literal(f"dbo.{form}")
    at, ticks, cpu, executions, requests = answers.row(
        connection, _COUNTS.format(name=name), answers.moment, int, int, Maybe(int), Maybe(int)
    )
    if executions is None:
        raise MeasurementFailed(
            f"SQL Server has no statistics of dbo.{form}: its plan was evicted from the cache.",
            fix="Check whether something empties the plan cache, or memory is short.",
        )
    if requests is None:
        raise MeasurementFailed("SQL Server has no counter Batch Requests/sec.")
    used = _scheduler_times(connection) if schedulers else None
    return ServerCounts(at, ticks, cpu, executions, requests, used)


def _scheduler_times(connection: pyodbc.Connection) -> SchedulerTimes:
    rows = answers.rows(connection, _SCHEDULERS, int, int, int)
    if not rows:
        raise answers.unexpected(connection, "no scheduler", _SCHEDULERS)
    return SchedulerTimes(rows[0][0], {one: used for _ticks, one, used in rows})


def counts_schedulers(connection: pyodbc.Connection) -> bool:
    """Whether this version has the CPU time of each scheduler."""
    return bool(answers.present(connection, "sys.dm_os_schedulers", ("total_cpu_usage_ms",)))


def last_input(connection: pyodbc.Connection, session: int) -> tuple[str, str]:
    """Another session's last request: `RPC Event` and a procedure, or `Language Event` and a text.

    https://learn.microsoft.com/sql/t-sql/database-console-commands/dbcc-inputbuffer-transact-sql
    """
    statement = f"DBCC INPUTBUFFER ({session}) WITH NO_INFOMSGS"
    rows = answers.rows(connection, statement, str, Maybe(int), Maybe(str))
    kind, _parameters, text = rows[0] if rows else ("No Event", 0, "")
    return kind, " ".join((text or "").split())


def endpoint(connection: pyodbc.Connection, session: int) -> Endpoint | None:
    """A session's client; None if this login may not see it."""
    try:
        rows = answers.rows(connection, _ENDPOINT.format(session=session), *[Maybe(str)] * 3)
    except PrivilegeMissing:
        return None
    return Endpoint(*(item or "" for item in rows[0])) if rows else None


def connection_limit(connection: pyodbc.Connection) -> int | None:
    """The option `user connections`; None without a limit."""
    found = answers.rows(
        connection,
        "SELECT CAST(value_in_use AS bigint) AS value_in_use FROM sys.configurations "
        "WHERE name = N'user connections'",
        int,
    )
    return (found[0][0] or None) if found else None


def is_call_of(form: str, sent: tuple[str, str]) -> bool:
    """Whether a session's request is a remote procedure call of the form's procedure by name."""
    kind, text = sent
    name = text.partition(";")[0].rpartition(".")[2].strip("[] ")
    return kind == "RPC Event" and name.casefold() == form
