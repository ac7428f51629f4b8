"""Baseline, what we wrote, and what is there now."""

from __future__ import annotations

from typing import Any

from vnuma.engine.lease.baseline import conflict_words, conflicts, written

BASELINE: dict[str, Any] = {"numCoresPerSocket": 4, "memoryMB": 65536, "cpuAffinity": ()}


def test_what_we_wrote_is_no_conflict() -> None:
    """A VM in the shape of some arm is as we left it."""
    assert not conflicts(BASELINE, {"numCoresPerSocket": {4, 8}}, BASELINE | {"numCoresPerSocket": 8})


def test_ours_is_what_an_attempt_wrote_not_what_it_found() -> None:
    """What it found may be somebody else's; lists of JSON are compared as settings are."""
    edits = [{"setting": "numCoresPerSocket", "before": 4, "after": 8}]
    assert written([edits, [{"setting": "cpuAffinity", "before": [], "after": [0, 1]}]]) == {
        "numCoresPerSocket": {8},
        "cpuAffinity": {(0, 1)},
    }


def test_a_vm_at_its_baseline_has_no_conflict() -> None:
    """Nothing differs, so nobody changed anything."""
    assert not conflicts(BASELINE, {}, BASELINE)


def test_a_value_that_is_neither_ours_nor_the_baselines_is_a_foreign_change() -> None:
    """Named with all three values; also where the run has set it, to another one."""
    (found,) = conflicts(BASELINE, {"numCoresPerSocket": {4, 8}}, BASELINE | {"memoryMB": 98304})

    assert (found.setting, found.baseline, found.now) == ("memoryMB", 65536, 98304)
    (found,) = conflicts(BASELINE, {"numCoresPerSocket": {8}}, BASELINE | {"numCoresPerSocket": 2})
    assert (found.setting, found.baseline, found.ours, found.now) == ("numCoresPerSocket", 4, 8, 2)


def test_keys_that_esxi_rewrites_at_power_on_are_no_foreign_change() -> None:
    """The autosize keys come back by themselves."""
    assert not conflicts({}, {}, {"numa.autosize.cookie": "160082"})


def test_a_reservation_that_follows_the_memory_lock_is_ours() -> None:
    """vSphere moves it, not a person."""
    ours: dict[str, Any] = {"memoryReservationLockedToMax": {False, True}}
    now: dict[str, Any] = {"memoryReservation": 65536, "memoryReservationLockedToMax": True}

    assert not conflicts({"memoryReservation": 0, "memoryReservationLockedToMax": False}, ours, now)


def test_the_words_are_a_table_of_three_values() -> None:
    """Setting, baseline, ours, now; absent values are called none."""
    text = conflict_words("sql-c", conflicts(BASELINE, {}, BASELINE | {"cpuAffinity": (0, 1)}))

    assert "sql-c was changed by somebody else" in text
    assert text.splitlines()[-1].split() == ["cpuAffinity", "none", "none", "0,1"]
