"""Concurrent inserting sessions: all wait for one start, which is given when all have arrived."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from vnuma.errors import MeasurementFailed, PlacementNotProven
from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.instance import spinlocks
from vnuma.sqlserver.instance.spinlocks import Counters
from vnuma.workloads.log_spinlock import load as log_load
from vnuma.workloads.log_spinlock.load import ARRIVE_S, Ran

_LOOK_S = 0.02


@dataclass(frozen=True)
class Loaded:
    """A load's duration by SQL Server's clock, the counters meanwhile, and its sessions' CPUs."""

    elapsed_s: float
    longest_session_s: float
    spent: Counters
    cpus: tuple[int, ...]


@dataclass(frozen=True)
class Load:
    """A planned load: its form, number of sessions, and inserts per session."""

    server: SqlServer
    database: str
    form: str
    sessions: int
    inserts_each: int
    timeout_s: float


def run_load(load: Load, control: pyodbc.Connection, allowed: tuple[int, ...]) -> Loaded:
    """Start every session, release them together, and wait for the last.

    `control` is a connection to the database. The start is an application lock instead of WAITFOR TIME: a
    slow connection cannot be late and shorten the load, and waiting sessions are visible with their CPUs.
    Raises PlacementNotProven when a session runs on a CPU that is not allowed, MeasurementFailed,
    ConnectionDropped.
    """
    log_load.hold_start(control)
    with ThreadPoolExecutor(load.sessions, thread_name_prefix="log-load") as pool:
        with _called_off_on_error(control, load.form):
            waiting = [pool.submit(_session, load, number) for number in range(1, load.sessions + 1)]
            cpus = _all_arrived(control, waiting)
            _require_on(cpus, allowed)
            before = spinlocks.read_counters(control)
        log_load.release_sessions(control)
        ran = [session.result() for session in waiting]
    spent = spinlocks.difference(before, spinlocks.read_counters(control))
    if spinlocks.was_cleared(spent):
        raise MeasurementFailed(
            "SQL Server's counters were cleared while the load ran, so no difference can be taken.",
            fix="Stop whatever calls DBCC SQLPERF (..., CLEAR) on this instance.",
        )
    window = max(one.ended for one in ran) - min(one.began for one in ran)
    longest = max(one.ended - one.began for one in ran)
    return Loaded(window.total_seconds(), longest.total_seconds(), spent, cpus)


def _session(load: Load, number: int) -> Ran:
    """One session, on a connection of its own."""
    batch = log_load.session_batch(load.form, number, load.inserts_each)
    # All sessions log in at once, and logins to one server take turns.
    in_turn_s = 5 + load.sessions / 5
    with connect(load.server, load.database, in_turn_s, load.timeout_s + ARRIVE_S) as connection:
        began, ended = answers.row(connection, batch, answers.moment, answers.moment)
    return Ran(began, ended)


@contextmanager
def _called_off_on_error(control: pyodbc.Connection, form: str) -> Iterator[None]:
    """After an error before the start, release the waiting sessions without their load."""
    try:
        yield
    except BaseException:
        log_load.release_without_load(control, form)
        raise


def _all_arrived(control: pyodbc.Connection, sessions: list[Future[Ran]]) -> tuple[int, ...]:
    """The CPU of each session, once all wait. Raises the error of one of them, or MeasurementFailed."""
    deadline = time.monotonic() + ARRIVE_S / 2
    while True:
        cpus = log_load.waiting_cpus(control)
        if len(cpus) >= len(sessions):
            return tuple(cpu for _session, cpu in sorted(cpus.items()))
        for session in sessions:
            if session.done():
                session.result()
        if time.monotonic() > deadline:
            raise MeasurementFailed(
                f"Only {len(cpus)} of {len(sessions)} sessions had arrived after {ARRIVE_S / 2:.0f} s.",
                fix="Check whether something limits connections, workers or memory on this SQL Server.",
            )
        time.sleep(_LOOK_S)


def _require_on(cpus: tuple[int, ...], allowed: tuple[int, ...]) -> None:
    strangers = sorted(set(cpus) - set(allowed))
    if strangers:
        raise PlacementNotProven(
            f"Sessions run on CPU {', '.join(map(str, strangers))}, outside the process affinity.",
            fix="Check whether one of your resource pools has its own affinity.",
        )
