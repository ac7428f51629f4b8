"""A study's allowed hours: whether a cell may begin now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from vnuma.domain.study import Study
from vnuma.engine.plan import assumed_cell_seconds
from vnuma.errors import PreflightBlocked
from vnuma.store.rows import AttemptLine, Outcome


def refuse_if_closed(study: Study, now: datetime) -> None:
    """Raise PreflightBlocked when no cell could begin now: nothing is touched then."""
    why = why_closed(study, (), now)
    if why:
        raise PreflightBlocked(f"{why} Nothing was changed.", fix="Start it within its allowed_hours.")


def why_closed(study: Study, past: Sequence[AttemptLine], now: datetime) -> str | None:
    """Why the VM's next cell may not begin at `now`; None when it may.

    A cell counts as long as the longest valid one so far, or as assumed before there is one.
    """
    hours = study.allowed_hours
    if hours is None:
        return None
    closes = hours.closes(now)
    if closes is None:
        return f"The allowed hours, {hours.words}, open at {_clock(hours.opens(now))}."
    cell_s = _cell_seconds(study, past)
    if now + timedelta(seconds=cell_s + hours.restore_s) <= closes:
        return None
    return (
        f"The allowed hours end at {_clock(closes)}; a cell takes about {_minutes(cell_s)} "
        f"and putting back {_minutes(hours.restore_s)}."
    )


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
