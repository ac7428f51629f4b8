"""Changes as values: computed, applied and undone, on any settings."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.vm.change import Change, Edit, change_back, change_to, net, settings_after

numbers = st.integers(0, 64)
settings = st.fixed_dictionaries(
    {
        "numCPUs": st.integers(1, 64),
        "numCoresPerSocket": st.integers(1, 64),
        "cpuAffinity": st.lists(numbers, unique=True, max_size=8).map(tuple),
        "memoryReservationLockedToMax": st.booleans(),
        "memoryReservation": numbers,
    },
    optional={
        "numa.autosize.cookie": st.sampled_from(["160042", "160022"]),
        "numa.vcpu.followcorespersocket": st.just("1"),
    },
)


def apply(now: dict[str, Any], change: Change) -> dict[str, Any]:
    """A VM that takes every edit, as extraConfig does: None removes a key."""
    after = now | change.desired
    return {name: value for name, value in after.items() if value is not None}


EDITS = st.lists(
    st.builds(Edit, st.sampled_from(["numCPUs", "power"]), st.integers(1, 3), st.integers(1, 3)), max_size=8
)


@given(EDITS)
def test_edits_one_after_the_other_come_to_their_first_and_last_values(edits: list[Edit]) -> None:
    """Each setting once, from what it was to what it is; one that is again as it was is left out."""
    expected = {}
    for name in {edit.setting for edit in edits}:
        of_it = [edit for edit in edits if edit.setting == name]
        if of_it[0].before != of_it[-1].after:
            expected[name] = (of_it[0].before, of_it[-1].after)

    assert {edit.setting: (edit.before, edit.after) for edit in net(edits)} == expected


@given(settings, settings)
def test_a_change_applied_leaves_nothing_to_change(now: dict[str, Any], wanted: dict[str, Any]) -> None:
    """The second computation of the same wish is empty: idempotence."""
    assert not change_to(apply(now, change_to(now, wanted)), wanted)


@given(settings, settings)
def test_changing_back_restores_the_baseline_from_anywhere(
    baseline: dict[str, Any], now: dict[str, Any]
) -> None:
    """Whatever the VM has become, governed keys and typed settings are the baseline's again."""
    after = apply(now, change_back(now, baseline))
    locked = baseline["memoryReservationLockedToMax"]  # then vSphere keeps the reservation itself

    for name in set(baseline) | set(after):
        if name == "memoryReservation" and locked:
            continue
        wanted, got = baseline.get(name), after.get(name)
        assert set(got or ()) == set(wanted) if isinstance(wanted, tuple) else got == wanted


SHOWN: dict[str, Any] = {"autoCoresPerSocket": True, "numCoresPerSocket": 8}
UNSET: dict[str, Any] = {"autoCoresPerNumaNode": None, "coresPerNumaNode": None}


@pytest.mark.parametrize(
    ("now", "wanted", "edits"),
    [
        ({"numCPUs": 4, "memoryMB": 8192}, {"numCPUs": 8}, [("numCPUs", 4, 8)]),
        ({"cpuAffinity": (2, 0)}, {"cpuAffinity": (0, 2)}, []),
        ({"cpuAffinity": None}, {"cpuAffinity": ()}, []),
        ({}, {"cpuid.coresPerSocket": "4", "sched.cpu.affinity": "all"}, []),  # vSphere ignores such keys
        ({"cpuid.maxVCPUs": "64"}, {"cpuid.maxVCPUs": "128"}, []),  # evidence for a rule
        (SHOWN, {"numCoresPerSocket": 8}, [("numCoresPerSocket", 0, 8)]),  # 8 shown as automatic is not 8
        (SHOWN, {"numCoresPerSocket": 0}, []),
        ({"numCPUs": 16}, {"cpuHotAddEnabled": False}, [("cpuHotAddEnabled", None, False)]),
        ({}, {"numa.vcpu.min": "9"}, [("numa.vcpu.min", None, "9")]),
    ],
)
def test_only_what_differs_from_a_wish_is_changed(
    now: dict[str, Any], wanted: dict[str, Any], edits: list[tuple[str, Any, Any]]
) -> None:
    """A CPU set has no order; what nobody may write is left alone, and so is what is not named."""
    assert change_to(now, wanted).edits == tuple(Edit(*edit) for edit in edits)


@pytest.mark.parametrize(
    ("now", "baseline", "desired"),
    [
        (SHOWN, {"autoCoresPerSocket": True, "numCoresPerSocket": 16}, {}),  # 0 again would reconfigure
        (SHOWN | {"autoCoresPerSocket": False}, SHOWN, {"numCoresPerSocket": 0}),
        ({"autoCoresPerNumaNode": True, "coresPerNumaNode": 16}, UNSET, {}),
        ({"autoCoresPerNumaNode": False, "coresPerNumaNode": 4}, UNSET, {"coresPerNumaNode": None}),
        ({"numa.vcpu.followcorespersocket": "1"}, {}, {"numa.vcpu.followcorespersocket": None}),
        ({"numa.vcpu.min": "9"}, {}, {"numa.vcpu.min": None}),
        ({"cpuid.maxVCPUs": "64"}, {}, {}),
    ],
)
def test_a_baseline_is_what_is_written_back(
    now: dict[str, Any], baseline: dict[str, Any], desired: dict[str, Any]
) -> None:
    """Automatic stays automatic, whatever number is shown; a key that was not there is removed."""
    assert change_back(now, baseline).desired == desired


def test_settings_after_a_change_know_what_is_automatic() -> None:
    """A power-on goes by that, not by the number that is shown."""
    after = settings_after({"autoCoresPerSocket": True, "numCoresPerSocket": 8}, {"numCoresPerSocket": 8})

    assert after == {"autoCoresPerSocket": False, "numCoresPerSocket": 8}


def test_topology_needs_the_vm_off_and_a_reservation_does_not() -> None:
    """Only what the VM must be off for causes a shutdown."""
    assert change_to({"numCoresPerSocket": 4}, {"numCoresPerSocket": 8}).needs_power_off
    assert not change_to({"memoryReservation": 0}, {"memoryReservation": 1024}).needs_power_off
