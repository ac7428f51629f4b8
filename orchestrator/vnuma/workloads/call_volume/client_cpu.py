"""Whether the client was the limit, from the CPU use of its machine and of each caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_IDLE = (3, 4)
"""Positions of idle and iowait in the line `cpu` of /proc/stat (proc(5))."""


@dataclass(frozen=True)
class MachineTime:
    """Time of all CPUs of the client's machine since its start, in ticks."""

    all: int
    idle: int


def machine_time(stat: str | None) -> MachineTime | None:
    """The machine's CPU time so far, from the line `cpu` of its /proc/stat; None without one."""
    if stat is None:
        return None
    ticks = [int(part) for part in stat.split()[1:9]]
    return MachineTime(sum(ticks), sum(ticks[place] for place in _IDLE))


def machine_busy(before: MachineTime | None, after: MachineTime | None) -> float | None:
    """The share of all CPUs that were busy in between, 0 to 1; None if unknown."""
    if before is None or after is None or after.all <= before.all:
        return None
    return 1 - (after.idle - before.idle) / (after.all - before.all)


def headroom(machine: float | None, each: Sequence[float]) -> float:
    """Percent of CPU that the client had left: the machine's, or its busiest caller's if lower.

    A caller normally waits for answers. One that is always busy runs at the client's speed, not the server's.
    """
    used = max((machine or 0.0, *each))
    return 100 * (1 - min(used, 1.0))
