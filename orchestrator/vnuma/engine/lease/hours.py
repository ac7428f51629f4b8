"""A study's allowed hours: whether a cell may start now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from vnuma.domain.study.cell_time import assumed_cell_seconds
from vnuma.domain.study.study import Study
from vnuma.errors import PreflightBlocked
from vnuma.store.rows import AttemptLine
from vnuma.store.states import Outcome

LONGER = "Allow a longer window, a smaller restore_s, or a shorter cell: fewer iterations, smaller sizes."


@dataclass(frozen=True)
class Closed:
    """Why no cell may start, and what to do. `for_good`: none ever fits these hours."""

    why: str
    for_good: bool = False


def refuse_if_closed(study: Study, now: datetime) -> None:
    """Raise PreflightBlocked when no cell could start now, before anything is touched."""
    found = closed(study, (), now)
    if found:
        fix = LONGER if found.for_good else "Start it within its allowed_hours."
        raise PreflightBlocked(f"{found.why} Nothing was changed.", fix=fix)


def why_closed(study: Study, past: Sequence[AttemptLine], now: datetime) -> str | None:
    """`closed` as text."""
    found = closed(study, past, now)
    return found.why if found else None


def closed(study: Study, past: Sequence[AttemptLine], now: datetime) -> Closed | None:
    """Why the VM's next cell may not start at `now`; None when it may.

    A cell is expected to take as long as the longest valid one, or as assumed before there is one.
    """
    hours = study.allowed_hours
    if hours is None:
        return None
    cell_s = _cell_seconds(study, past)
    never = why_never(study, cell_s)
    if never:
        return Closed(never, for_good=True)
    closes = hours.closes(now)
    if closes is None:
        return Closed(f"The allowed hours, {hours.words}, open at {_clock(hours.opens(now))}.")
    if now + timedelta(seconds=cell_s + hours.restore_s) <= closes:
        return None
    return Closed(f"The allowed hours end at {_clock(closes)}; {_needed(study, cell_s)}.")


def why_never(study: Study, cell_s: float) -> str | None:
    """Why such a cell fits no window of the allowed hours; None when it fits, or there are none."""
    longest = study.allowed_hours.longest_s if study.allowed_hours else None
    if study.allowed_hours is None or longest is None or cell_s + study.allowed_hours.restore_s <= longest:
        return None
    return (
        f"No cell fits into the allowed hours, {study.allowed_hours.words}: the longest window has "
        f"{_minutes(longest)}, {_needed(study, cell_s)}."
    )


def _needed(study: Study, cell_s: float) -> str:
    restore_s = study.allowed_hours.restore_s if study.allowed_hours else 0.0
    return f"a cell takes about {_minutes(cell_s)} and restoring {_minutes(restore_s)}"


def _cell_seconds(study: Study, past: Sequence[AttemptLine]) -> float:
    took = [
        (attempt.ended_at - attempt.started_at).total_seconds()
        for attempt in past
        if attempt.outcome is Outcome.VALID and attempt.ended_at
    ]
    return max(took, default=assumed_cell_seconds(study))


def _clock(moment: datetime) -> str:
    return f"{moment:%a %Y-%m-%d %H:%M %Z}"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
