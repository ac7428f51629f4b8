"""Allowed hours: which cell may still begin, and when a run has to restore."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vnuma.domain.study.study import Study
from vnuma.engine.lease.hours import (
    closed,
    is_over,
    must_stop_at,
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


def test_the_last_cell_leaves_time_to_restore() -> None:
    """Cells of 20 minutes and 10 to restore: the last one begins half an hour before the end."""
    past = [took(20), took(15), took(90, Outcome.FAILED)]
    assert closed(study(), past, CLOSES - timedelta(minutes=30)) is None
    shut = closed(study(), past, CLOSES - timedelta(minutes=29))
    assert shut
    assert shut.why == (
        "The allowed hours end at Thu 2026-11-19 06:00 UTC; a cell takes about 20 min and restoring 10 min."
    )


def test_before_a_cell_was_measured_its_length_is_assumed() -> None:
    """As the plan assumes it for real hardware: more than five minutes."""
    assert closed(study(), [], CLOSES - timedelta(minutes=15)) is not None


def test_outside_its_hours_a_study_does_not_begin() -> None:
    """It says when it may, and without allowed hours it may always."""
    noon = datetime(2026, 11, 18, 12, tzinfo=UTC)
    with pytest.raises(PreflightBlocked, match="open at Wed 2026-11-18 20:00 UTC"):
        refuse_if_closed(study(), noon)
    refuse_if_closed(study(allowed_hours=None), noon)


HOUR = {"time_zone": "UTC", "windows": ["Wed 20:00-20:20", "Sat 20:00-20:19"], "restore_s": 900}


def test_hours_too_short_for_any_cell_are_refused_with_the_numbers() -> None:
    """In the plan, at the start (whenever that is), and once cells turn out to take longer than a window."""
    numbers = r"the longest window has 20 min, a cell takes about \d+ min and restoring 15 min"
    short = study(allowed_hours=HOUR)

    assert [found.severity for found in measurement_findings(short) if found.id == "D04"] == ["block"]
    with pytest.raises(PreflightBlocked, match=numbers) as refused:
        refuse_if_closed(short, datetime(2026, 11, 18, 20, tzinfo=UTC))
    assert "longer window" in (refused.value.fix or "")
    fits = study()
    assert not [found for found in measurement_findings(fits) if found.id == "D04"]
    found = closed(fits, [took(9 * 60 + 51)], CLOSES - timedelta(hours=10))
    assert found
    assert (found.for_good, "the longest window has 600 min, a cell takes about 591 min" in found.why) == (
        True,
        True,
    )


def test_hours_that_never_close_end_no_run() -> None:
    """However many weeks it takes; only the present moment is asked about."""
    always = study(allowed_hours={"time_zone": "UTC", "windows": ["Mon-Sun 00:00-24:00"]})

    for days in (0, 9, 10, 200):
        assert not is_over(always, CLOSES + timedelta(days=days))
        assert closed(always, [took(26 * 60)], CLOSES + timedelta(days=days)) is None


def test_a_run_has_to_restore_before_its_window_ends() -> None:
    """However long its present cell takes."""
    assert must_stop_at(study(), CLOSES - timedelta(hours=2)) == CLOSES - timedelta(minutes=10)
    assert must_stop_at(study(allowed_hours=None), CLOSES) is None


def test_a_cell_that_takes_too_long_is_stopped_when_only_the_time_to_restore_is_left() -> None:
    """And a step that would begin when the window has closed altogether."""
    refuse_if_over(study(), "s.1", CLOSES - timedelta(minutes=11))
    for moment in (CLOSES - timedelta(minutes=10), CLOSES + timedelta(hours=1)):
        with pytest.raises(Interrupted, match=r"s\.1 stops here: its allowed hours, Wed 20:00-06:00 \(UTC\)"):
            refuse_if_over(study(), "s.1", moment)
    refuse_if_over(study(allowed_hours=None), "s.1", CLOSES)
