"""Inserts on the log writer's node or another: the cost of the log cache's spinlock across NUMA nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial

from vnuma.domain.study.study import Dataset
from vnuma.errors import MeasurementFailed, PlacementNotProven, PrivilegeMissing
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run_all, value
from vnuma.sqlserver.database import ownership
from vnuma.sqlserver.database.dataset import GENERATED, committed_target_kb, ensure_filegroup, inside
from vnuma.sqlserver.database.ownership import major_version
from vnuma.sqlserver.instance import call_counters, server_configuration
from vnuma.sqlserver.instance.call_counters import LOGCACHE_ACCESS, Counters, LogWriter, WorkerCpus
from vnuma.sqlserver.instance.server_configuration import affinity_to, cpus_by_memory_node
from vnuma.workloads.interface import (
    Bench,
    Document,
    Obstacle,
    Reading,
    SystemUnderTest,
    Workload,
    without_memory_optimised,
)
from vnuma.workloads.log_spinlock import load as log_load
from vnuma.workloads.log_spinlock.load import Load, Loaded, run_load
from vnuma.workloads.log_spinlock.settings import BACKOFFS, CYCLES, FLUSH, ROWS_PER_INSERT, SPINS, LogSpinlock

_INSTEAD = "Choose arms with two vNUMA nodes, and see sys.dm_exec_requests (command LOG WRITER)."


_SINCE = 12
"""SQL Server 2014: delayed durability and natively compiled procedures."""


def _run(
    system: SystemUnderTest, connection: pyodbc.Connection, cpus: tuple[int, ...], size: int, form: str
) -> Reading:
    """One load into an empty table, by workers on these CPUs; its rows are counted afterwards."""
    settings, database = system.settings, system.dataset.database
    run_all(connection, log_load.make(form, size))
    log_load.truncate_log(connection, database)
    inserts_each = size // settings.sessions
    load = Load(system.server, database, form, settings.sessions, inserts_each, settings.timeout_s)
    loaded = run_load(load, connection, cpus)
    rows = _require_rows(connection, form, size)
    return reading(loaded, size, rows, len(cpus))


def reading(loaded: Loaded, inserts: int, rows: int, cpus: int) -> Reading:
    """The load's time per insert, and its counters."""
    spent = loaded.spent
    return Reading(
        elapsed_ms=loaded.elapsed_s * 1000,
        value=loaded.elapsed_s * 1e6 / inserts,
        figures=figures(spent, inserts, loaded.elapsed_s, cpus),
        rows=rows,
        waits={"WRITELOG": {"tasks": spent.flush_waits, "wait_ms": spent.flush_wait_ms, "signal_ms": 0}},
        execution={
            "longest_session_ms": loaded.longest_session_s * 1000,
            "session_cpus": list(loaded.cpus),
            "clock_hz": spent.hz,
            "clock_from": "sys.dm_os_sys_info: cpu_ticks over ms_ticks, between the two readings",
            "spinlocks": {name: asdict(spinlock) for name, spinlock in spent.top().items()},
        },
    )


def figures(spent: Counters, inserts: int, elapsed_s: float, cpus: int) -> dict[str, float]:
    """Spins, cycles and waits of a load, without unknown ones.

    Cycles per spin are all cycles of the workers' CPUs divided by the spins, as published: an upper bound,
    since the CPUs do other work too.
    """
    spinlock = spent.spinlocks.get(LOGCACHE_ACCESS)
    found = {FLUSH.name: float(spent.flush_wait_ms)}
    if spinlock is None:
        return found
    found[SPINS.name] = spinlock.spins / inserts
    found[BACKOFFS.name] = spinlock.backoffs * 1000 / inserts
    if spent.hz is not None and spinlock.spins:
        found[CYCLES.name] = elapsed_s * cpus * spent.hz / spinlock.spins
    return found


def _obstacles(connection: pyodbc.Connection, settings: LogSpinlock, dataset: Dataset) -> Iterator[Obstacle]:
    """Everything that keeps it from running on this server, with what to do about it."""
    if major_version(connection) < _SINCE:
        yield Obstacle(
            "This SQL Server is older than 2014: it has neither delayed durability nor In-Memory OLTP.",
            "Use SQL Server 2014 or later.",
        )
        return
    purpose = "set the process affinity (ALTER SERVER CONFIGURATION)"
    yield from _rights(connection, "ALTER SETTINGS", purpose)
    yield from _writers(connection)
    if "native" in settings.forms:
        yield from _native(connection, settings)


def _prepare(system: SystemUnderTest) -> Document:
    """Create the database in sufficient size; its tables are recreated for each load."""
    settings: LogSpinlock = system.settings
    database = system.dataset.database
    with connect(system.server) as connection:
        changed = ownership.ensure(connection, database)
        with inside(connection, database):
            if "native" in settings.forms:
                ensure_filegroup(connection, database)
            log_load.make_room(connection, database, data_mb=settings.data_mb, log_mb=settings.log_mb)
            log_load.keep_log(connection, database)
    if settings.pool_share is not None:
        system.resource_pool(settings.pool_share)
    return {
        "database": database,
        "source": GENERATED,
        "generated": True,
        "changed": changed,
        "data_mb": settings.data_mb,
        "log_mb": settings.log_mb,
    }


@contextmanager
def _bench(system: SystemUnderTest) -> Iterator[Bench]:
    """Place workers on the log writers' node or away from it, and verify both."""
    settings: LogSpinlock = system.settings
    database = system.dataset.database
    with connect(system.server, database) as connection:
        log_load.set_durability(connection, database, settings.durability)
        placed = _find_worker_cpus(connection)
        cpus = placed.cpus(settings.workers)
        with system.process_affinity(affinity_to(cpus)):
            writers = call_counters.read_log_writers(connection)
            _require_still_there(writers, placed)
            system.record("workload", _evidence(settings, writers, placed, cpus))
            yield partial(_run, system, connection, cpus)
            for form in settings.forms:
                run_all(connection, list(log_load.make(form, 1))[:2])


def _find_worker_cpus(connection: pyodbc.Connection) -> WorkerCpus:
    writers = call_counters.read_log_writers(connection)
    nodes = cpus_by_memory_node(connection)
    placed = call_counters.worker_cpus(writers, nodes)
    if placed is None:
        homes = ", ".join(str(node) for node in sorted({writer.memory_node_id for writer in writers}))
        raise PlacementNotProven(
            f"No vNUMA node has all log writers while another has none: {len(writers)} log writers on "
            f"memory nodes {homes or 'unknown'}, of {len(nodes)} nodes.",
            fix=_INSTEAD,
        )
    return placed


def _require_still_there(writers: tuple[LogWriter, ...], placed: WorkerCpus) -> None:
    """The process affinity must not have moved the log writers; SQL Server up to 2017 documents that it does
    not.
    """
    homes = {writer.memory_node_id for writer in writers}
    if homes != {placed.writer_node}:
        raise PlacementNotProven(
            f"The log writers left memory node {placed.writer_node} when the process affinity was set: "
            f"they are on {', '.join(map(str, sorted(homes)))}.",
            fix=_INSTEAD,
        )


def _evidence(
    settings: LogSpinlock, writers: tuple[LogWriter, ...], placed: WorkerCpus, cpus: tuple[int, ...]
) -> Document:
    return {
        "workers": settings.workers,
        "worker_node": placed.writer_node if settings.workers == "same_node" else placed.other_node,
        "worker_cpus": list(cpus),
        "log_writers": [asdict(writer) for writer in writers],
        "log_writer_node": placed.writer_node,
        "cpus_left_out": list(placed.left_out),
        "durability": settings.durability,
    }


def _require_rows(connection: pyodbc.Connection, form: str, inserts: int) -> int:
    rows, wanted = log_load.count_rows(connection, form), inserts * ROWS_PER_INSERT[form]
    if rows != wanted:
        raise MeasurementFailed(
            f"{log_load.TABLES[form]} holds {rows:,} rows after the load, not {wanted:,}.",
            fix="Check SQL Server's error log: the log or the resource pool may be full.",
        )
    return rows


def _rights(connection: pyodbc.Connection, permission: str, purpose: str) -> Iterator[Obstacle]:
    if value(connection, f"SELECT HAS_PERMS_BY_NAME(NULL, NULL, N'{permission}') AS granted") != 1:
        yield Obstacle(
            f"The login may not {purpose}: it lacks {permission}.", f"GRANT {permission} TO the login."
        )


def _writers(connection: pyodbc.Connection) -> Iterator[Obstacle]:
    """Log writers must be visible and on a single node, since that node is compared with another."""
    try:
        writers = call_counters.read_log_writers(connection)
    except PrivilegeMissing as error:
        yield Obstacle(error.what, error.fix or "GRANT VIEW SERVER STATE TO the login.")
        return
    nodes = sorted({writer.memory_node_id for writer in writers})
    if not nodes:
        yield Obstacle(
            "SQL Server shows no log writer (sys.dm_exec_requests, command LOG WRITER).",
            "Which version is it? Report it with SELECT @@VERSION.",
        )
    elif len(nodes) > 1:
        yield Obstacle(
            f"The log writers are on memory nodes {', '.join(map(str, nodes))}: no node without one is left.",
            "This workload compares the log writers' node with another; it cannot run on this SQL Server.",
        )


def _native(connection: pyodbc.Connection, settings: LogSpinlock) -> Iterator[Obstacle]:
    """In-Memory OLTP, a resource pool for it, and memory for the largest load."""
    without = "Use Enterprise or Developer edition, or set workload.forms: [disk]."
    missing = [Obstacle(one.what, without) for one in without_memory_optimised(connection)]
    if missing:
        yield from missing
        return
    if not server_configuration.has_governor(connection):
        yield Obstacle("This edition has no Resource Governor, so memory cannot be kept apart.", without)
        return
    yield from _rights(connection, "CONTROL SERVER", "make a resource pool (CREATE RESOURCE POOL)")
    governor = server_configuration.read_governor(connection)
    if governor.pending:
        yield Obstacle(
            "Changes to the Resource Governor are waiting for RECONFIGURE, which this workload would "
            "put into effect.",
            "ALTER RESOURCE GOVERNOR RECONFIGURE, or take the changes back.",
        )
    if governor.pool_percent is not None:
        yield Obstacle(
            f"The resource pool {server_configuration.POOL} already exists, left by another run.",
            f"vnuma restore the VM, or DROP RESOURCE POOL {server_configuration.POOL}.",
        )
    most = committed_target_kb(connection) / 1024 * settings.pool_percent / 100
    if settings.native_mb > most:
        yield Obstacle(
            f"{max(settings.sizes):,} inserts of form native need {settings.native_mb:,} MB; "
            f"workload.pool_percent {settings.pool_percent} leaves {most:,.0f} MB.",
            "Use smaller sizes, a larger share, or give SQL Server more memory.",
        )


WORKLOAD = Workload(settings=LogSpinlock, obstacles=_obstacles, prepare=_prepare, bench=_bench)
