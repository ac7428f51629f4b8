"""The end of a study's allowed hours, while a run works in them: from then on its VMs are put back."""

from __future__ import annotations

from datetime import datetime, timedelta

from vnuma.domain.study import Study
from vnuma.errors import Interrupted


def must_stop_at(study: Study, now: datetime) -> datetime | None:
    """When a run that works now has to begin putting its VMs back; None without allowed hours."""
    hours = study.allowed_hours
    closes = hours.closes(now) if hours else None
    return closes - timedelta(seconds=hours.restore_s) if hours and closes else None


def refuse_if_over(study: Study, run: str, now: datetime) -> None:
    """Raise Interrupted when the allowed hours leave no more than the time to put back, or are over.

    Asked at each step of a cell and between its iterations, by whoever plays it: a play has no supervisor
    that would stop it in time.
    """
    hours = study.allowed_hours
    if hours is None:
        return
    stop = must_stop_at(study, now)
    if stop is None or now >= stop:
        raise Interrupted(
            f"{run} stops here: its allowed hours, {hours.words}, leave only the time to put its VMs back.",
            fix=f"Within them: vnuma run --resume {run}",
        )
