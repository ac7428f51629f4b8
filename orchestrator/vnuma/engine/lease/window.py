"""The end of a study's allowed hours, while a run works in them: from then on its VMs are restored."""

from __future__ import annotations

from datetime import datetime, timedelta

from vnuma.domain.study.study import Study
from vnuma.errors import Interrupted


def must_stop_at(study: Study, now: datetime) -> datetime | None:
    """When a run that works now has to begin putting its VMs back; None without allowed hours."""
    hours = study.allowed_hours
    closes = hours.closes(now) if hours else None
    return closes - timedelta(seconds=hours.restore_s) if hours and closes else None


def is_over(study: Study, now: datetime) -> bool:
    """Whether the allowed hours leave no more than the time to put the VMs back, or are over.

    Asked again and again: of hours that never close, `closes` is a moment that moves on.
    """
    if study.allowed_hours is None:
        return False
    stop = must_stop_at(study, now)
    return stop is None or now >= stop


def refuse_if_over(study: Study, run: str, now: datetime) -> None:
    """Raise Interrupted when the allowed hours leave no more than the time to restore, or are over.

    Asked at each step of a cell and between its iterations, by whoever plays it: a play has no supervisor
    that would stop it in time.
    """
    if study.allowed_hours and is_over(study, now):
        raise Interrupted(
            f"{run} stops here: its allowed hours, {study.allowed_hours.words}, leave only the time to "
            "restore its VMs.",
            fix=f"Within the allowed hours: vnuma run --resume {run}",
        )
