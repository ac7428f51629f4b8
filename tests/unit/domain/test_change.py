"""Changes as values: computed, applied and undone, on any settings."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from vnuma.domain.vm.change import Change, Edit, change_back, change_to, differences, net, settings_after

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


def test_settings_that_are_not_named_are_kept() -> None:
    """A wish for one setting says nothing about the others."""
    assert change_to({"numCPUs": 4, "memoryMB": 8192}, {"numCPUs": 8}) == Change((Edit("numCPUs", 4, 8),))


def test_the_order_of_an_affinity_list_is_no_change() -> None:
    """A CPU set has no order."""
    assert not change_to({"cpuAffinity": (2, 0)}, {"cpuAffinity": (0, 2)})


def test_no_affinity_and_an_empty_list_are_the_same() -> None:
    """vSphere reads a cleared affinity back as unset."""
    assert not change_to({"cpuAffinity": None}, {"cpuAffinity": ()})


def test_keys_that_vsphere_owns_elsewhere_are_never_written() -> None:
    """cpuid.coresPerSocket in extraConfig would be silently ignored."""
    assert not change_to({}, {"cpuid.coresPerSocket": "4", "sched.cpu.affinity": "all"})


def test_an_automatic_value_that_still_is_automatic_is_not_sent_again() -> None:
    """Sending 0 again forces a hardware reconfigure."""
    baseline = {"autoCoresPerSocket": True, "numCoresPerSocket": 16}

    assert not change_back({"autoCoresPerSocket": True, "numCoresPerSocket": 8}, baseline)
    assert change_back({"autoCoresPerSocket": False, "numCoresPerSocket": 8}, baseline).desired == {
        "numCoresPerSocket": 0
    }


def test_a_number_that_vsphere_chose_is_not_the_one_that_is_asked_for() -> None:
    """8 shown as automatic is not 8 by hand, and automatic is not asked for twice."""
    shown = {"autoCoresPerSocket": True, "numCoresPerSocket": 8}

    assert change_to(shown, {"numCoresPerSocket": 8}).edits == (Edit("numCoresPerSocket", 0, 8),)
    assert not change_to(shown, {"numCoresPerSocket": 0})


def test_settings_after_a_change_know_what_is_automatic() -> None:
    """A power-on goes by that, not by the number that is shown."""
    after = settings_after({"autoCoresPerSocket": True, "numCoresPerSocket": 8}, {"numCoresPerSocket": 8})

    assert after == {"autoCoresPerSocket": False, "numCoresPerSocket": 8}


def test_a_value_that_was_never_set_and_is_automatic_now_is_not_changed() -> None:
    """Before vSphere 8 first computed it there was none; afterwards it is shown as automatic."""
    baseline = {"autoCoresPerNumaNode": None, "coresPerNumaNode": None}

    assert not change_back({"autoCoresPerNumaNode": True, "coresPerNumaNode": 16}, baseline)
    assert change_back({"autoCoresPerNumaNode": False, "coresPerNumaNode": 4}, baseline)


def test_a_numa_key_that_the_baseline_did_not_have_is_removed() -> None:
    """Removed means None, which the adapter sends as an empty value."""
    change = change_back({"numa.vcpu.followcorespersocket": "1"}, {})

    assert change.edits == (Edit("numa.vcpu.followcorespersocket", "1", None),)


def test_topology_needs_the_vm_off_and_a_reservation_does_not() -> None:
    """Only what the VM must be off for causes a shutdown."""
    assert change_to({"numCoresPerSocket": 4}, {"numCoresPerSocket": 8}).needs_power_off
    assert not change_to({"memoryReservation": 0}, {"memoryReservation": 1024}).needs_power_off


def test_differences_name_what_reads_back_otherwise() -> None:
    """Asked for 8, read 4: that is the difference."""
    assert differences({"numCPUs": 8}, {"numCPUs": 4}).edits == (Edit("numCPUs", 4, 8),)


def test_what_rules_only_read_is_neither_changed_nor_restored() -> None:
    """cpuid.maxVCPUs is evidence for a design rule, and nobody's to write."""
    assert not change_to({"cpuid.maxVCPUs": "64"}, {"cpuid.maxVCPUs": "128"})
    assert not change_back({"cpuid.maxVCPUs": "64"}, {})
