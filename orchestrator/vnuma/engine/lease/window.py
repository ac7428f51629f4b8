"""The end of a study's allowed hours during a run: its VMs are then restored."""

from __future__ import annotations

from datetime import datetime, timedelta

from vnuma.domain.study.study import Study
from vnuma.errors import Interrupted


def must_stop_at(study: Study, now: datetime) -> datetime | None:
    """When a run must start restoring its VMs; None without allowed hours."""
    hours = study.allowed_hours
    closes = hours.closes(now) if hours else None
    return closes - timedelta(seconds=hours.restore_s) if hours and closes else None


def is_over(study: Study, now: datetime) -> bool:
    """Whether the allowed hours are over or leave only the time to restore the VMs.

    Ask again each time: `closes` moves on for hours that never close.
    """
    if study.allowed_hours is None:
        return False
    stop = must_stop_at(study, now)
    return stop is None or now >= stop


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
