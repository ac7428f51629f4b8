"""Wait until SQL Server is ready after a boot.

Four stages in order: a login to master; SQL Server started after the power-on; the dataset's database ONLINE
(its memory-optimised data is loaded by then); the guest quiet.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from vnuma.domain.study.study import Quiet
from vnuma.domain.vm.endpoint import began_within
from vnuma.errors import (
    AccountRefused,
    DatabaseMissing,
    LoginRefused,
    SqlFailed,
    SqlTimeout,
    SqlUnreachable,
    VnumaError,
)
from vnuma.sqlserver.client import query
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import where
from vnuma.sqlserver.database import ownership

TICKS = (
    "SELECT ms_ticks, sqlserver_start_time_ms_ticks, process_kernel_time_ms, process_user_time_ms, cpu_count "
    "FROM sys.dm_os_sys_info"
)
_GUEST = (
    "SELECT TOP (1) timestamp, record FROM sys.dm_os_ring_buffers "
    "WHERE ring_buffer_type = N'RING_BUFFER_SCHEDULER_MONITOR' AND record LIKE N'%<SystemHealth>%' "
    "ORDER BY timestamp DESC"
)
_IDLE = re.compile(r"<SystemIdle>(\d{1,3})</SystemIdle>")
_FRESH_MS = 90_000
"""SQL Server writes one record a minute; an older one is out of date."""


@dataclass(frozen=True)
class Reading:
    """SQL Server's clocks, in milliseconds since the start of the guest or of SQL Server."""

    ms_ticks: int
    start_ms_ticks: int
    process_cpu_ms: int
    cpus: int

    @property
    def uptime_s(self) -> float:
        """Seconds since SQL Server started, independent of the guest's wall clock."""
        return (self.ms_ticks - self.start_ms_ticks) / 1000


@dataclass(frozen=True)
class Quietness:
    """Whether the guest became quiet: None if not evaluated, with the reason in `note`.

    `sql_cpu_percent` is SQL Server's own use of the guest's CPUs; `guest_cpu_percent` is everybody's, if
    there is a record of the last minute and a half.
    """

    quiet: bool | None
    note: str = ""
    sql_cpu_percent: float | None = None
    guest_cpu_percent: float | None = None
    waited_s: float = 0.0


def read_ticks(connection: pyodbc.Connection) -> Reading:
    """Read the clocks. Raises PrivilegeMissing without VIEW SERVER STATE."""
    ticks, start, kernel, user, cpus = query.row(connection, TICKS, *[int] * 5)
    return Reading(ticks, start, kernel + user, cpus)


def sql_cpu_percent(before: Reading, after: Reading) -> float | None:
    """SQL Server's share of all the guest's CPUs between two readings; None if no time passed."""
    passed = after.ms_ticks - before.ms_ticks
    if passed <= 0 or after.cpus <= 0:
        return None
    return 100 * (after.process_cpu_ms - before.process_cpu_ms) / (passed * after.cpus)


def guest_cpu_percent(connection: pyodbc.Connection, now: Reading) -> float | None:
    """The whole guest's CPU use from the scheduler monitor's newest record; None without a recent one."""
    try:
        rows = query.rows(connection, _GUEST, int, str)
    except SqlFailed:  # a server without this ring buffer has no value
        return None
    if not rows or now.ms_ticks - rows[0][0] > _FRESH_MS:
        return None
    return parse_record(rows[0][1])


def parse_record(record: str) -> float | None:
    """CPU use in percent from a scheduler monitor's record; None without one."""
    match = _IDLE.search(record)
    if match is None or int(match[1]) > 100:
        return None
    return 100.0 - int(match[1])


_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 5.0
_REFUSED_PAUSE_S = 15.0
"""Pause after a refused login: a server may refuse the first while its domain is out of reach."""
_LOGIN_TIMEOUT_S = 5.0
_ANSWER_S = 15.0
"""A server that takes longer than this for a small query is not ready."""


@dataclass(frozen=True)
class Ready:
    """A ready server. `uptime_s` and `waited_s` are seconds; `quietness` may be "not evaluated"."""

    uptime_s: float
    waited_s: float
    attempts: int
    quietness: Quietness


class _NotYet(Exception):
    """A stage is not reached yet; `stage` and the text become part of the final error."""

    def __init__(self, stage: str, why: str) -> None:
        super().__init__(why)
        self.stage = stage


def wait_ready(
    server: SqlServer,
    *,
    database: str | None,
    powered_on_s: float,
    deadline_s: float,
    quiet: Quiet,
    clock: Clock | None = None,
) -> Ready:
    """Wait until the server is ready and the guest quiet.

    `powered_on_s` says how many seconds ago the VM was powered on. SQL Server's uptime must be shorter, so
    that a server that never went down does not pass for a rebooted one. Wall clocks are not compared. A
    database of None is not waited for.

    Raises SqlTimeout with the stage and the last error; AccountRefused when the last of a few spaced logins
    was refused; LoginRefused for a missing Kerberos ticket, or refused logins at the deadline; DriverMissing,
    CertificateRejected, PrivilegeMissing and DatabaseMissing at once: one in recovery is listed too.
    """
    clock = clock or Clock()
    started = clock.now()
    pause, attempts = _FIRST_PAUSE_S, 0
    while True:
        attempts += 1
        try:
            reading = _look(server, database, lambda: powered_on_s + clock.now() - started)
            break
        except AccountRefused:
            raise
        except (_NotYet, SqlUnreachable, LoginRefused, SqlFailed) as error:
            left = deadline_s - (clock.now() - started)
            if left <= 0:
                raise _gave_up(server, error, deadline_s) from error
            clock.wait(min(_REFUSED_PAUSE_S if isinstance(error, LoginRefused) else pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE_S)
    waited = clock.now() - started
    return Ready(reading.uptime_s, waited, attempts, _wait_quiet(server, quiet, clock))


def _look(server: SqlServer, database: str | None, age_s: Callable[[], float]) -> Reading:
    """Check every stage once. Raises _NotYet or the connection's error.

    `age_s` returns the seconds since the power-on, as a login may take a while.
    """
    with connect(server, login_timeout_s=_LOGIN_TIMEOUT_S, statement_timeout_s=_ANSWER_S) as connection:
        reading = read_ticks(connection)
        age = age_s()
        if not began_within(reading.uptime_s, age):
            raise _NotYet(
                "waiting for a start after the power-on",
                f"SQL Server has been up for {reading.uptime_s:.0f} s, but the VM was powered on "
                f"{age:.0f} s ago",
            )
        if database is not None:
            _require_online(connection, database)
        return reading


def _require_online(connection: pyodbc.Connection, database: str) -> None:
    found = ownership.state(connection, database)
    if found is None:
        raise DatabaseMissing(
            f"{where(connection)}: SQL Server is up, but database {database} does not exist.",
            fix="Restore or create it, or correct the study.",
        )
    if found != "ONLINE":
        raise _NotYet("waiting for the database", f"database {database} is {found}")


def _gave_up(server: SqlServer, error: Exception, deadline_s: float) -> VnumaError:
    """The error at the deadline; logins that are still refused have their own."""
    said = error.what if isinstance(error, VnumaError) else str(error)
    if isinstance(error, LoginRefused):
        return LoginRefused(f"{said} This lasted for {deadline_s:g} s after the boot.", fix=error.fix)
    said = said.removeprefix(f"{server.where}: ")
    stage = error.stage if isinstance(error, _NotYet) else "waiting for a login"
    return SqlTimeout(
        f"{server.where}: SQL Server was not ready within {deadline_s:g} s, {stage}: {said.rstrip('.')}.",
        fix="Check the guest's console and SQL Server's error log; power.sql_timeout_s sets the deadline.",
    )


def _wait_quiet(server: SqlServer, rule: Quiet, clock: Clock) -> Quietness:
    """Wait for a quiet guest. A guest that stays busy, or an unknown state, does not fail the boot."""
    if rule.for_s <= 0:
        return Quietness(None, "not evaluated: the study does not wait for a quiet guest (quiet.for_s: 0)")
    started = clock.now()
    try:
        with connect(server, login_timeout_s=_LOGIN_TIMEOUT_S, statement_timeout_s=_ANSWER_S) as connection:
            return _watch(connection, rule, clock, started)
    except (SqlUnreachable, SqlFailed, LoginRefused) as error:
        return Quietness(None, f"not evaluated: {error.what}", waited_s=clock.now() - started)


def _watch(connection: pyodbc.Connection, rule: Quiet, clock: Clock, started: float) -> Quietness:
    interval = max(0.5, min(5.0, rule.for_s / 4))
    before, quiet_since = read_ticks(connection), clock.now()
    while True:
        clock.wait(interval)
        after = read_ticks(connection)
        own = sql_cpu_percent(before, after)
        guest = guest_cpu_percent(connection, after)
        now, before = clock.now(), after
        shares = [share for share in (own, guest) if share is not None]
        if not shares or max(shares) >= rule.cpu_percent:
            quiet_since = now
        waited = now - started
        if now - quiet_since >= rule.for_s:
            return Quietness(True, "", own, guest, waited)
        if waited >= rule.timeout_s:
            note = f"busy: not below {rule.cpu_percent:g} % for {rule.for_s:g} s within {rule.timeout_s:g} s"
            return Quietness(False, note, own, guest, waited)


class Clock:
    """The machine's monotonic clock, which can wait."""

    def now(self) -> float:
        """Seconds since some fixed moment of this machine."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(max(0.0, seconds))
