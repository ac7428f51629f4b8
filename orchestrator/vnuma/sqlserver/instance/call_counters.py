"""SQL Server's own counts of calls, on its clock: for the instance and for one procedure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from vnuma.errors import MeasurementFailed, PrivilegeMissing
from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import Maybe
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
    at, ticks, cpu, executions, requests = query.row(
        connection, _COUNTS.format(name=name), query.moment, int, int, Maybe(int), Maybe(int)
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
    rows = query.rows(connection, _SCHEDULERS, int, int, int)
    if not rows:
        raise query.unexpected(connection, "no scheduler", _SCHEDULERS)
    return SchedulerTimes(rows[0][0], {one: used for _ticks, one, used in rows})


def counts_schedulers(connection: pyodbc.Connection) -> bool:
    """Whether this version has the CPU time of each scheduler."""
    return bool(query.present(connection, "sys.dm_os_schedulers", ("total_cpu_usage_ms",)))


def last_input(connection: pyodbc.Connection, session: int) -> tuple[str, str]:
    """Another session's last request: `RPC Event` and a procedure, or `Language Event` and a text.

    https://learn.microsoft.com/sql/t-sql/database-console-commands/dbcc-inputbuffer-transact-sql
    """
    statement = f"DBCC INPUTBUFFER ({session}) WITH NO_INFOMSGS"
    rows = query.rows(connection, statement, str, Maybe(int), Maybe(str))
    kind, _parameters, text = rows[0] if rows else ("No Event", 0, "")
    return kind, " ".join((text or "").split())


def endpoint(connection: pyodbc.Connection, session: int) -> Endpoint | None:
    """A session's client; None if this login may not see it."""
    try:
        rows = query.rows(connection, _ENDPOINT.format(session=session), *[Maybe(str)] * 3)
    except PrivilegeMissing:
        return None
    return Endpoint(*(item or "" for item in rows[0])) if rows else None


def connection_limit(connection: pyodbc.Connection) -> int | None:
    """The option `user connections`; None without a limit."""
    found = query.rows(
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


_WRITERS = (
    "SELECT r.session_id, r.scheduler_id, s.cpu_id, s.parent_node_id, n.memory_node_id, s.status "
    "FROM sys.dm_exec_requests AS r "
    "JOIN sys.dm_os_schedulers AS s ON s.scheduler_id = r.scheduler_id "
    "JOIN sys.dm_os_nodes AS n ON n.node_id = s.parent_node_id "
    "WHERE r.command = N'LOG WRITER' ORDER BY r.session_id"
)


@dataclass(frozen=True)
class LogWriter:
    """A log writer's session, scheduler and CPU, and the scheduler's SQL Server and memory nodes."""

    session_id: int
    scheduler_id: int
    cpu_id: int
    node_id: int
    memory_node_id: int
    status: str


@dataclass(frozen=True)
class WorkerCpus:
    """Equally many CPUs for workers on the log writers' memory node and on another; and unused ones."""

    writer_node: int
    other_node: int
    same: tuple[int, ...]
    other: tuple[int, ...]
    left_out: tuple[int, ...]

    def cpus(self, workers: str) -> tuple[int, ...]:
        """The CPUs of `same_node` or `other_node`."""
        return self.same if workers == "same_node" else self.other


def read_log_writers(connection: pyodbc.Connection) -> tuple[LogWriter, ...]:
    """The present log writers. Raises PrivilegeMissing without VIEW SERVER STATE."""
    return tuple(LogWriter(*found) for found in query.rows(connection, _WRITERS, *[int] * 5, str))


def worker_cpus(writers: Sequence[LogWriter], nodes: Mapping[int, tuple[int, ...]]) -> WorkerCpus | None:
    """The CPUs of either side; None when the writers are on several nodes, or there is only one node.

    The writers' CPUs are left out; where the server gives none of that node (255: unbound), its lowest CPU.
    On the other node, the CPUs at the same positions are left out. Both sides are then cut to the shorter.
    """
    homes = {writer.memory_node_id for writer in writers}
    if len(homes) != 1 or not homes <= set(nodes) or len(nodes) < 2:
        return None
    home = homes.pop()
    other = min((node for node in nodes if node > home), default=min(set(nodes) - {home}))
    near, far = sorted(nodes[home]), sorted(nodes[other])
    taken = _places(writers, near)
    same = [cpu for place, cpu in enumerate(near) if place not in taken]
    away = [cpu for place, cpu in enumerate(far) if place not in taken]
    both = min(len(same), len(away))
    if not both:
        return None
    kept = (*same[:both], *away[:both])
    left_out = tuple(cpu for cpu in (*near, *far) if cpu not in kept)
    return WorkerCpus(home, other, tuple(same[:both]), tuple(away[:both]), left_out)


def _places(writers: Sequence[LogWriter], cpus: list[int]) -> set[int]:
    """The positions of the writers' CPUs within a node; the first free one for an unknown CPU."""
    taken = {cpus.index(writer.cpu_id) for writer in writers if writer.cpu_id in cpus}
    for writer in writers:
        if writer.cpu_id not in cpus:
            taken.add(min(set(range(len(cpus) + len(taken))) - taken))
    return taken


LOGCACHE_ACCESS = "LOGCACHE_ACCESS"

_SPINLOCKS = "SELECT name, spins, collisions, backoffs FROM sys.dm_os_spinlock_stats"
_FLUSH = "SELECT waiting_tasks_count, wait_time_ms FROM sys.dm_os_wait_stats WHERE wait_type = N'WRITELOG'"
_TICKS = "SELECT cpu_ticks, ms_ticks FROM sys.dm_os_sys_info"


@dataclass(frozen=True)
class Spinlock:
    """One type of spinlock: spins, collisions and backoffs."""

    spins: int
    collisions: int
    backoffs: int


@dataclass(frozen=True)
class Counters:
    """One reading, or the difference of two."""

    spinlocks: Mapping[str, Spinlock]
    flush_waits: int
    flush_wait_ms: int
    cpu_ticks: int
    ms_ticks: int

    @property
    def hz(self) -> float | None:
        """Of a difference: the rate of the time stamp counter, in cycles a second.

        This is the CPU's nominal clock, independent of turbo and idle states. None under 100 ms, where a
        millisecond is more than 1%.
        """
        return self.cpu_ticks * 1000 / self.ms_ticks if self.ms_ticks >= 100 else None

    def top(self) -> dict[str, Spinlock]:
        """The 5 spinlocks with the most spins; those without any are left out."""
        ranked = sorted(self.spinlocks.items(), key=lambda item: (-item[1].spins, item[0]))
        return {name: spinlock for name, spinlock in ranked[:5] if spinlock.spins}


def read_counters(connection: pyodbc.Connection) -> Counters:
    """The instance's present counters. Raises PrivilegeMissing without VIEW SERVER STATE."""
    spinlocks = {
        name: Spinlock(*counts) for name, *counts in query.rows(connection, _SPINLOCKS, str, int, int, int)
    }
    waits, wait_ms = (query.rows(connection, _FLUSH, int, int) or [(0, 0)])[0]
    cpu, ms = query.row(connection, _TICKS, int, int)
    return Counters(spinlocks, waits, wait_ms, cpu, ms)


def difference(before: Counters, after: Counters) -> Counters:
    """The counts between two readings."""
    none = Spinlock(0, 0, 0)
    spinlocks = {
        name: query.increase(spinlock, before.spinlocks.get(name, none))
        for name, spinlock in after.spinlocks.items()
    }
    return Counters(
        spinlocks,
        after.flush_waits - before.flush_waits,
        after.flush_wait_ms - before.flush_wait_ms,
        after.cpu_ticks - before.cpu_ticks,
        after.ms_ticks - before.ms_ticks,
    )


def was_cleared(spent: Counters) -> bool:
    """Whether a counter decreased, because somebody cleared it meanwhile."""
    return spent.flush_waits < 0 or any(spinlock.spins < 0 for spinlock in spent.spinlocks.values())
