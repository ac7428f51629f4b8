"""A study's allowed hours: whether a cell may start now, and when VMs have to be restored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from vnuma.domain.study.order import assumed_cell_seconds
from vnuma.domain.study.study import Study
from vnuma.errors import Interrupted, PreflightBlocked
from vnuma.store.rows import AttemptLine, Outcome

LONGER = "Allow a longer window, a smaller restore_s, or a shorter cell: fewer iterations, smaller sizes."


@dataclass(frozen=True)
class Closed:
    """Why no cell may start, and what to do. `for_good`: none ever fits these hours."""

    why: str
    for_good: bool = False


def refuse_if_closed(study: Study, now: datetime) -> None:
    """Raise PreflightBlocked when no cell could start now, before anything is touched."""
    if found := closed(study, (), now):
        fix = LONGER if found.for_good else "Start it within its allowed_hours."
        raise PreflightBlocked(f"{found.why} Nothing was changed.", fix=fix)


def closed(study: Study, past: Sequence[AttemptLine], now: datetime) -> Closed | None:
    """Why the VM's next cell may not start at `now`; None when it may.

    A cell is expected to take as long as the longest valid one, or as assumed before there is one.
    """
    if (hours := study.allowed_hours) is None:
        return None
    took = (attempt.seconds for attempt in past if attempt.outcome is Outcome.VALID)
    cell_s = max(took, default=assumed_cell_seconds(study))
    if never := why_never(study, cell_s):
        return Closed(never, for_good=True)
    if (closes := hours.closes(now)) is None:
        return Closed(f"The allowed hours, {hours.words}, open at {_clock(hours.opens(now))}.")
    if now + timedelta(seconds=cell_s + hours.restore_s) <= closes:
        return None
    return Closed(f"The allowed hours end at {_clock(closes)}; {_needed(cell_s, hours.restore_s)}.")


def why_never(study: Study, cell_s: float) -> str | None:
    """Why such a cell fits no window of the allowed hours; None when it fits, or there are none."""
    hours = study.allowed_hours
    if hours is None or (longest := hours.longest_s) is None or cell_s + hours.restore_s <= longest:
        return None
    return (
        f"No cell fits into the allowed hours, {hours.words}: the longest window has "
        f"{_minutes(longest)}, {_needed(cell_s, hours.restore_s)}."
    )


def _needed(cell_s: float, restore_s: float) -> str:
    return f"a cell takes about {_minutes(cell_s)} and restoring {_minutes(restore_s)}"


def _clock(moment: datetime) -> str:
    return f"{moment:%a %Y-%m-%d %H:%M %Z}"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def is_over(study: Study, now: datetime) -> bool:
    """Whether the allowed hours are over or leave only the time to restore the VMs.

    Ask again each time: `closes` moves on for hours that never close.
    """
    if (hours := study.allowed_hours) is None:
        return False
    closes = hours.closes(now)
    return closes is None or now >= closes - timedelta(seconds=hours.restore_s)


def refuse_if_over(study: Study, run: str, now: datetime) -> None:
    """Raise Interrupted when the allowed hours are over or leave only the time to restore.

    Called at each step and between iterations, since a play without a supervisor is not stopped in time.
    """
    if study.allowed_hours and is_over(study, now):
        raise Interrupted(
            f"{run} stops here: its allowed hours, {study.allowed_hours.words}, leave only the time to "
            "restore its VMs.",
            fix=f"Within the allowed hours: vnuma run --resume {run}",
        )
