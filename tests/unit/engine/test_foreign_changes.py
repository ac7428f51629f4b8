"""Baseline, what we wrote, and what is there now."""

from __future__ import annotations

from typing import Any

import pytest

from vnuma.engine.lease.baseline import conflict_words, conflicts, written

BASELINE: dict[str, Any] = {"numCoresPerSocket": 4, "memoryMB": 65536, "cpuAffinity": ()}


LOCKED: dict[str, Any] = {"memoryReservation": 65536, "memoryReservationLockedToMax": True}
UNLOCKED: dict[str, Any] = {"memoryReservation": 0, "memoryReservationLockedToMax": False}


@pytest.mark.parametrize(
    ("baseline", "ours", "now"),
    [
        (BASELINE, {}, BASELINE),
        (BASELINE, {"numCoresPerSocket": {4, 8}}, BASELINE | {"numCoresPerSocket": 8}),
        ({}, {}, {"numa.autosize.cookie": "160082"}),  # ESXi writes it at power-on
        (UNLOCKED, {"memoryReservationLockedToMax": {False, True}}, LOCKED),  # vSphere moves the reservation
    ],
)
def test_what_we_or_vsphere_wrote_is_no_conflict(
    baseline: dict[str, Any], ours: dict[str, Any], now: dict[str, Any]
) -> None:
    """A VM in the shape of some arm is as we left it."""
    assert not conflicts(baseline, ours, now)


def test_ours_is_what_an_attempt_wrote_not_what_it_found() -> None:
    """What it found may be somebody else's; lists of JSON are compared as settings are."""
    edits = [{"setting": "numCoresPerSocket", "before": 4, "after": 8}]
    assert written([edits, [{"setting": "cpuAffinity", "before": [], "after": [0, 1]}]]) == {
        "numCoresPerSocket": {8},
        "cpuAffinity": {(0, 1)},
    }


def test_a_value_that_is_neither_ours_nor_the_baselines_is_a_foreign_change() -> None:
    """Named with all three values; also where the run has set it, to another one."""
    (found,) = conflicts(BASELINE, {"numCoresPerSocket": {4, 8}}, BASELINE | {"memoryMB": 98304})

    assert (found.setting, found.baseline, found.now) == ("memoryMB", 65536, 98304)
    (found,) = conflicts(BASELINE, {"numCoresPerSocket": {8}}, BASELINE | {"numCoresPerSocket": 2})
    assert (found.setting, found.baseline, found.ours, found.now) == ("numCoresPerSocket", 4, 8, 2)


def test_the_words_are_a_table_of_three_values() -> None:
    """Setting, baseline, ours, now; absent values are called none."""
    text = conflict_words("sql-c", conflicts(BASELINE, {}, BASELINE | {"cpuAffinity": (0, 1)}))

    assert text.splitlines()[-1].split() == ["cpuAffinity", "none", "none", "0,1"]
