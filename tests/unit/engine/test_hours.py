"""Allowed hours: which cell may still begin, and when a run has to restore."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vnuma.domain.study.study import Study
from vnuma.engine.lease.hours import (
    closed,
    is_over,
    refuse_if_closed,
    refuse_if_over,
)
from vnuma.engine.preflight.preflight import measurement_findings
from vnuma.errors import Interrupted, PreflightBlocked
from vnuma.store.rows import AttemptLine, Outcome

CLOSES = datetime(2026, 11, 19, 6, tzinfo=UTC)


def study(**changes: Any) -> Study:
    """Allowed on Wednesday night until 06:00 UTC, with ten minutes for restoring."""
    base = {
        "name": "s",
        "vms": ["sql16"],
        "vcpus": 16,
        "reference": "1x16",
        "arms": ["1x16", "4x4"],
        "allowed_hours": {"time_zone": "UTC", "windows": ["Wed 20:00-06:00"], "restore_s": 600},
    }
    return Study.model_validate(base | changes)


def took(minutes: float, outcome: Outcome = Outcome.VALID) -> AttemptLine:
    """An attempt that took so long."""
    began = CLOSES - timedelta(hours=5)
    ended = began + timedelta(minutes=minutes)
    return AttemptLine(1, 1, 1, "1x16", 1, 1, None, None, began, ended, outcome, None)


@pytest.mark.parametrize(
    ("past", "minutes", "shut"),
    [
        ([took(20), took(15), took(90, Outcome.FAILED)], 30, False),
        ([took(20), took(15), took(90, Outcome.FAILED)], 29, True),
        ([], 15, True),  # as the plan assumes it for real hardware: more than five minutes
    ],
)
def test_the_last_cell_leaves_time_to_restore(past: list[AttemptLine], minutes: int, shut: bool) -> None:
    """Cells of 20 minutes and 10 to restore: the last one begins half an hour before the end."""
    assert bool(closed(study(), past, CLOSES - timedelta(minutes=minutes))) is shut


def test_outside_its_hours_a_study_does_not_begin() -> None:
    """It says when it may, and without allowed hours it may always."""
    noon = datetime(2026, 11, 18, 12, tzinfo=UTC)
    with pytest.raises(PreflightBlocked):
        refuse_if_closed(study(), noon)
    refuse_if_closed(study(allowed_hours=None), noon)


HOUR = {"time_zone": "UTC", "windows": ["Wed 20:00-20:20", "Sat 20:00-20:19"], "restore_s": 900}


def test_hours_too_short_for_any_cell_are_refused() -> None:
    """In the plan, at the start (whenever that is), and once cells turn out to take longer than a window."""
    short = study(allowed_hours=HOUR)

    assert [found.severity for found in measurement_findings(short) if found.id == "D04"] == ["block"]
    with pytest.raises(PreflightBlocked):
        refuse_if_closed(short, datetime(2026, 11, 18, 20, tzinfo=UTC))
    fits = study()
    assert not [found for found in measurement_findings(fits) if found.id == "D04"]
    for minutes, for_good in ((9 * 60 + 49, False), (9 * 60 + 51, True)):
        found = closed(fits, [took(minutes)], CLOSES - timedelta(hours=10))
        assert (found is not None and found.for_good) is for_good


def test_hours_that_never_close_end_no_run() -> None:
    """However many weeks it takes; only the present moment is asked about."""
    always = study(allowed_hours={"time_zone": "UTC", "windows": ["Mon-Sun 00:00-24:00"]})

    for days in (0, 9, 10, 200):
        assert not is_over(always, CLOSES + timedelta(days=days))
        assert closed(always, [took(26 * 60)], CLOSES + timedelta(days=days)) is None


def test_a_cell_that_takes_too_long_is_stopped_when_only_the_time_to_restore_is_left() -> None:
    """And a step that would begin when the window has closed altogether."""
    refuse_if_over(study(), "s.1", CLOSES - timedelta(minutes=11))
    for moment in (CLOSES - timedelta(minutes=10), CLOSES + timedelta(hours=1)):
        with pytest.raises(Interrupted):
            refuse_if_over(study(), "s.1", moment)
    refuse_if_over(study(allowed_hours=None), "s.1", CLOSES)
