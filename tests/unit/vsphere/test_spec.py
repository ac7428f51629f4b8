"""From a change to vSphere's ConfigSpec, and back from what vSphere shows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyVmomi import vim

from vnuma.domain.vm.change import Change, Edit, change_back, change_to
from vnuma.domain.vm.setting import DERIVED, TYPED, Settings, Value, ValueKind
from vnuma.vsphere.apply import fields_of, needs_shape, specs_for, unmet
from vnuma.vsphere.config_events import requested_settings
from vnuma.vsphere.facts import settings_of


def change(**after: Value) -> Change:
    """A change of settings that were unset before."""
    return Change(tuple(Edit(name, None, value) for name, value in after.items()))


def only_spec(asked: Change, current: Settings | None = None) -> Any:
    """The one request that the change becomes."""
    (spec,) = specs_for(asked, current or {})
    return spec


def sent(spec: vim.vm.ConfigSpec) -> dict[str, Any]:
    """The fields that travel: pyVmomi leaves None and an empty top-level list out."""
    values = {info.name: getattr(spec, info.name) for info in spec._GetPropertyList()}
    return {name: value for name, value in values.items() if value is not None and value != []}


def test_no_change_is_no_request() -> None:
    """An empty change asks vSphere for nothing."""
    assert specs_for(Change(), {}) == ()


def test_derived_values_are_never_written() -> None:
    """What vSphere computes is not sent, even where a change names it."""
    assert specs_for(change(autoCoresPerSocket=True), {}) == ()


OWN: Settings = {"numCPUs": 16, "numCoresPerSocket": 4}


@pytest.mark.parametrize(
    ("asked", "own", "expected"),
    [
        ({"numCPUs": 8}, OWN, {"numCPUs": 8, "numCoresPerSocket": 4}),
        ({"numCoresPerSocket": 8}, OWN, {"numCPUs": 16, "numCoresPerSocket": 8}),
        ({"numCoresPerSocket": 0}, OWN, {"numCPUs": 16, "numCoresPerSocket": 0}),  # 0 is not "unset"
        ({"numCPUs": 8}, {"numCoresPerSocket": 16, "autoCoresPerSocket": True}, {"numCPUs": 8}),
    ],
)
def test_half_of_the_shape_travels_with_the_vms_other_half(
    asked: Settings, own: Settings, expected: Settings
) -> None:
    """A new vCPU count does not turn automatic cores per socket into a number."""
    assert sent(only_spec(change(**asked), own)) == expected


@pytest.mark.parametrize(
    ("names", "needed"),
    [
        (("numCPUs",), True),
        (("numCoresPerSocket",), True),
        (("numCPUs", "numCoresPerSocket"), False),
        ((), False),
    ],
)
def test_half_of_the_shape_needs_the_other(names: tuple[str, ...], needed: bool) -> None:
    """Only a change of one half of the CPU shape needs the VM's own values."""
    assert needs_shape(change(**dict.fromkeys(names, 2))) is needed


@pytest.mark.parametrize("cleared", [(), None])
def test_affinity_is_cleared_by_an_empty_list(cleared: Value) -> None:
    """No affinity is an affinity of no CPUs: leaving it out would keep the old one."""
    spec = only_spec(Change((Edit("cpuAffinity", (0, 2), cleared),)))
    assert spec.cpuAffinity is not None
    assert list(spec.cpuAffinity.affinitySet) == []


def test_allocations_are_sent_in_part() -> None:
    """Reservation, limit and shares that were not asked for stay unset, which means unchanged."""
    spec = only_spec(change(memoryReservation=1024))
    allocation = spec.memoryAllocation
    assert (allocation.reservation, allocation.limit, allocation.shares) == (1024, None, None)
    assert spec.cpuAllocation is None


def test_parts_of_one_allocation_are_sent_together() -> None:
    """Two parts of one allocation share its field."""
    allocation = only_spec(change(cpuReservation=2300, cpuLimit=-1)).cpuAllocation
    assert (allocation.reservation, allocation.limit) == (2300, -1)


@pytest.mark.parametrize(("asked", "level", "number"), [("high", "high", 0), (4000, "custom", 4000)])
def test_shares_are_a_level_or_a_number(asked: Value, level: str, number: int) -> None:
    """A word is a level of shares, a number is custom shares."""
    shares = only_spec(change(memoryShares=asked)).memoryAllocation.shares
    assert (shares.level, shares.shares) == (level, number)


def test_a_lock_goes_before_its_reservation_is_lowered() -> None:
    """While the reservation is locked to the memory size it cannot be lowered: two requests."""
    requests: Any = specs_for(change(memoryReservationLockedToMax=False, memoryReservation=0), {})
    first, second = requests
    assert first.memoryReservationLockedToMax is False
    assert first.memoryAllocation is None
    assert second.memoryReservationLockedToMax is None
    assert second.memoryAllocation.reservation == 0


def test_virtual_numa_is_sent_only_when_asked_for() -> None:
    """A change without vNUMA fields does not touch them: older hardware refuses the field."""
    assert only_spec(change(numCPUs=4, numCoresPerSocket=2)).virtualNuma is None
    assert only_spec(change(coresPerNumaNode=8)).virtualNuma.coresPerNumaNode == 8
    assert only_spec(change(exposeVnumaOnCpuHotadd=True)).virtualNuma.exposeVnumaOnCpuHotadd is True


def test_unset_vnuma_size_is_cleared_by_zero() -> None:
    """A vNUMA node size that was not set before is cleared, which vSphere writes as 0."""
    assert only_spec(Change((Edit("coresPerNumaNode", 8, None),))).virtualNuma.coresPerNumaNode == 0


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (True, "TRUE"), (False, "FALSE"), (8, "8"), ((0, 1), "0,1"), ("a", "a")]
)
def test_extra_config_is_text(value: Value, text: str) -> None:
    """An advanced setting is text, and empty text removes it."""
    (option,) = only_spec(Change((Edit("numa.nodeAffinity", None, value),))).extraConfig
    assert (option.key, option.value) == ("numa.nodeAffinity", text)


def test_a_vcpu_count_cannot_be_unset() -> None:
    """A VM always has vCPUs: unsetting their number is a mistake, not a request."""
    with pytest.raises(ValueError, match="numCPUs cannot be unset"):
        specs_for(Change((Edit("numCPUs", 4, None),)), {})


def test_fields_are_named_for_older_apis() -> None:
    """The fields of the request that a change needs are known without making it."""
    asked = change(coresPerNumaNode=8, memoryShares="low", numCPUs=4, autoCoresPerSocket=True)
    assert fields_of(asked) == ("memoryAllocation", "numCPUs", "virtualNuma")


@pytest.mark.parametrize("name", sorted(TYPED))
def test_every_typed_setting_is_read_where_vsphere_has_it(name: str) -> None:
    """Each part of its path is a property."""
    kind: Any = vim.vm.ConfigInfo
    for part in TYPED[name].path.split("."):
        kind = kind._GetPropertyInfo(part).type


@pytest.mark.parametrize("name", sorted(TYPED.keys() - DERIVED))
def test_every_typed_setting_is_written_where_vsphere_has_it_and_found_in_the_event(name: str) -> None:
    """One request, which reads back as the setting, as it does from the event of that request."""
    examples: dict[ValueKind, Value] = {
        ValueKind.NUMBER: 8,
        ValueKind.SWITCH: True,
        ValueKind.WORD: "high",
        ValueKind.CPUS: (0, 2),
        ValueKind.SHARES: "low",
    }
    value = examples[TYPED[name].kind]

    assert requested_settings(only_spec(change(**{name: value}))) == {name: value}


def test_a_setting_that_reads_back_otherwise_is_unmet() -> None:
    """What reads back as something else is named, with what was asked and what was read."""
    assert unmet(change(numCoresPerSocket=4), {"numCoresPerSocket": 1}) == Change(
        (Edit("numCoresPerSocket", 1, 4),)
    )


LOCKED = {"memoryReservationLockedToMax": True}


@pytest.mark.parametrize(
    ("asked", "observed", "met"),
    [
        ({"numCoresPerSocket": 4}, {"numCoresPerSocket": 4}, True),
        ({"numCoresPerSocket": 0}, {"numCoresPerSocket": 8, "autoCoresPerSocket": True}, True),
        ({"numCoresPerSocket": 0}, {"numCoresPerSocket": 4, "autoCoresPerSocket": False}, False),
        ({"coresPerNumaNode": 0}, {"coresPerNumaNode": 8, "autoCoresPerNumaNode": True}, True),
        ({"coresPerNumaNode": 0}, {"coresPerNumaNode": None}, True),
        ({**LOCKED, "memoryReservation": 0}, {**LOCKED, "memoryReservation": 65536}, True),
    ],
)
def test_what_vsphere_chooses_is_met_by_any_number(asked: Settings, observed: Settings, met: bool) -> None:
    """0 asks for its choice: a number set by hand must not stay. A lock chooses the reservation."""
    assert (not unmet(change(**asked), observed)) is met


def config_of(spec: vim.vm.ConfigSpec) -> dict[str, Any]:
    """A VM's configuration that consists of what the request says, as the collector returns it."""
    numa, latency = spec.virtualNuma, spec.latencySensitivity
    leaves = {
        "config.hardware.numCPU": spec.numCPUs or 16,
        "config.hardware.numCoresPerSocket": spec.numCoresPerSocket or 4,
        "config.hardware.memoryMB": 65536,
        "config.numaInfo.coresPerNumaNode": numa and numa.coresPerNumaNode,
        "config.numaInfo.vnumaOnCpuHotaddExposed": numa and numa.exposeVnumaOnCpuHotadd,
        "config.cpuAffinity": spec.cpuAffinity,
        "config.memoryAffinity": spec.memoryAffinity,
        "config.memoryReservationLockedToMax": spec.memoryReservationLockedToMax,
        "config.latencySensitivity.level": latency and latency.level,
        "config.extraConfig": spec.extraConfig,
    }
    for name in ("memoryAllocation", "cpuAllocation"):
        allocation = getattr(spec, name)
        for part in ("reservation", "limit", "shares"):
            leaves[f"config.{name}.{part}"] = allocation and getattr(allocation, part)
    return {path: value for path, value in leaves.items() if value is not None}


cpus = st.sets(st.integers(0, 63), min_size=1).map(tuple)
wishes = st.fixed_dictionaries(
    {},
    optional={
        "numCPUs": st.integers(1, 64),
        "numCoresPerSocket": st.integers(1, 64),
        "cpuAffinity": cpus,
        "memoryAffinity": cpus,
        "memoryReservation": st.integers(0, 65536),
        "memoryLimit": st.integers(-1, 65536),
        "memoryShares": st.sampled_from(["low", "normal", "high"]) | st.integers(1, 100000),
        "cpuShares": st.integers(1, 100000),
        "coresPerNumaNode": st.integers(1, 64),
        "latencySensitivity": st.sampled_from(["normal", "high"]),
        "memoryReservationLockedToMax": st.just(True),
        "numa.vcpu.followcorespersocket": st.booleans(),
        "numa.nodeAffinity": st.just("0"),
    },
)


@given(wishes)
def test_what_is_written_reads_back(wanted: dict[str, Value]) -> None:
    """Reading a configuration made of a request gives the settings that the request was made of."""
    asked = change_to({}, wanted)
    for spec in specs_for(asked, {"numCPUs": 16, "numCoresPerSocket": 4}):
        assert not unmet(asked, settings_of(config_of(spec)))


@given(wishes)
def test_restoring_asks_for_every_changed_value(wanted: dict[str, Value]) -> None:
    """The way back from any change is a change too: it never fails for want of a word for "unset"."""
    baseline = settings_of(config_of(vim.vm.ConfigSpec()))
    current = baseline | wanted
    assert bool(specs_for(change_back(current, baseline), current)) == (current != baseline)
