"""Whether a freshly booted guest is quiet, as far as SQL Server can tell."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vnuma.errors import SqlFailed
from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.odbc import pyodbc

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
class QuietRule:
    """CPU use below `cpu_percent` for `for_s` seconds in a row (0: no wait); gives up after `timeout_s`."""

    cpu_percent: float
    for_s: float
    timeout_s: float


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
    ticks, start, kernel, user, cpus = answers.row(connection, TICKS, *[int] * 5)
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
        rows = answers.rows(connection, _GUEST, int, str)
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
