"""Instance-wide counters around a load: read before and after and subtracted, never cleared.

Clearing them (DBCC SQLPERF) would affect everybody's monitoring. Source:
https://learn.microsoft.com/sql/relational-databases/system-dynamic-management-views/sys-dm-os-spinlock-stats-transact-sql
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vnuma.sqlserver.client import answers
from vnuma.sqlserver.client.odbc import pyodbc

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
        name: Spinlock(*counts) for name, *counts in answers.rows(connection, _SPINLOCKS, str, int, int, int)
    }
    waits, wait_ms = (answers.rows(connection, _FLUSH, int, int) or [(0, 0)])[0]
    cpu, ms = answers.row(connection, _TICKS, int, int)
    return Counters(spinlocks, waits, wait_ms, cpu, ms)


def difference(before: Counters, after: Counters) -> Counters:
    """The counts between two readings."""
    none = Spinlock(0, 0, 0)
    spinlocks = {
        name: _minus(spinlock, before.spinlocks.get(name, none)) for name, spinlock in after.spinlocks.items()
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


def _minus(after: Spinlock, before: Spinlock) -> Spinlock:
    return Spinlock(
        after.spins - before.spins,
        after.collisions - before.collisions,
        after.backoffs - before.backoffs,
    )
