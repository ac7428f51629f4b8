"""Recipes: which settings bring an arm about on which release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.hosts import host_of, vm_of
from vnuma.domain.arm.arm import Arm
from vnuma.domain.arm.desired_settings import desired_settings
from vnuma.errors import ArmImpossible, PreflightBlocked

AUTOSIZE = {"numa.autosize.cookie": None, "numa.autosize.vcpu.maxPerVirtualNode": None}
FOLLOW = "numa.vcpu.followcorespersocket"
MAXIMUM = "numa.vcpu.maxPerVirtualNode"


def desired(release: str = "6.0.0", **arm: Any) -> dict[str, Any]:
    """The settings for an arm of 2x8 on the paper's host."""
    return desired_settings(Arm.model_validate({"topology": "2x8"} | arm), vm_of(), host_of(release=release))


def test_up_to_6_0_cores_per_socket_and_cleared_autosize_keys_are_enough() -> None:
    """There the socket is the node; a stored layout would win, so its keys go."""
    assert desired("6.0.0") == {"numCPUs": 16, "numCoresPerSocket": 8, FOLLOW: None, **AUTOSIZE}


@pytest.mark.parametrize("release", ["6.5.0", "6.7.0", "7.0.3", "8.0.3"])
def test_from_6_5_on_cores_per_socket_must_be_followed_on_purpose(release: str) -> None:
    """Otherwise the whole study would compare the same vNUMA nodes with themselves."""
    assert desired(release)[FOLLOW] == "1"


@pytest.mark.parametrize("size", [{"max_per_virtual_node": 4}, {"cores_per_numa_node": 4}])
def test_sockets_are_not_followed_where_the_arm_sizes_nodes_itself(size: dict[str, int]) -> None:
    """Two intents in one VM: no document says which one wins."""
    assert eight(**size)[FOLLOW] is None


def test_follow_off_removes_the_key_and_keep_leaves_it() -> None:
    """The third state has a name."""
    assert desired("8.0.3", follow_cores_per_socket="off")[FOLLOW] is None
    assert FOLLOW not in desired("8.0.3", follow_cores_per_socket="keep")


def test_autosize_keys_can_be_kept() -> None:
    """Then they are not part of the change at all."""
    assert not AUTOSIZE.keys() & desired(numa_autosize="keep").keys()


@pytest.mark.parametrize(
    ("wish", "settings"),
    [
        ("locked", {"memoryReservationLockedToMax": True}),
        ("none", {"memoryReservationLockedToMax": False, "memoryReservation": 0}),
        (65536, {"memoryReservationLockedToMax": False, "memoryReservation": 65536}),
        ("keep", {}),
    ],
)
def test_memory_reservation_in_every_state(wish: str | int, settings: dict[str, Any]) -> None:
    """Locked, none, a number, or left alone."""
    found = {name: value for name, value in desired(memory_reservation=wish).items() if "Reservation" in name}

    assert found == settings


def test_affinity_on_physical_cores_none_list_and_keep() -> None:
    """Cleared is an empty list, which vSphere needs; kept is not mentioned."""
    assert desired(affinity="physical_cores")["cpuAffinity"] == tuple(range(0, 32, 2))
    assert desired(affinity="none")["cpuAffinity"] == ()
    assert desired(affinity=[*range(17)])["cpuAffinity"] == tuple(range(17))
    assert "cpuAffinity" not in desired()


@pytest.mark.parametrize(
    ("wish", "settings"),
    [
        ({"numa_node_affinity": [1, 0]}, {"numa.nodeAffinity": "0,1"}),
        ({"numa_node_affinity": "none"}, {"numa.nodeAffinity": None}),
        ({"memory_affinity": [1]}, {"memoryAffinity": (1,)}),
        ({"memory_affinity": "none"}, {"memoryAffinity": ()}),
        ({"cpu_reservation": "full"}, {"cpuReservation": 36800}),
        ({"cpu_reservation": "none"}, {"cpuReservation": 0}),
        ({"cpu_hot_add": "off"}, {"cpuHotAddEnabled": False}),
        ({"max_per_virtual_node": 4}, {"numa.vcpu.maxPerVirtualNode": "4"}),
        ({"max_per_virtual_node": "auto"}, {"numa.vcpu.maxPerVirtualNode": None}),
        ({"numa_vcpu_min": 4}, {"numa.vcpu.min": "4"}),
        ({"prefer_ht": True}, {"numa.vcpu.preferHT": "TRUE"}),
        ({"prefer_ht": "auto"}, {"numa.vcpu.preferHT": None}),
        ({"latency_sensitivity": "normal"}, {"latencySensitivity": "normal"}),
        ({"numa": {"numa.consolidate": False}}, {"numa.consolidate": "FALSE"}),
        ({"numa": {"numa.consolidate": "auto"}}, {"numa.consolidate": None}),
        ({"cores_per_numa_node": "auto"}, {}),
    ],
)
def test_each_field_becomes_its_setting_and_keep_becomes_none(
    wish: dict[str, Any], settings: dict[str, Any]
) -> None:
    """What is not asked for is not mentioned; `auto` hands the choice back to ESXi."""
    plain = desired()

    assert {name: value for name, value in desired(**wish).items() if name not in plain} == settings


def test_a_key_is_written_as_the_vm_spells_it() -> None:
    """ESXi reads keys without case: a second spelling would leave the first in force."""
    vm = vm_of(**{"numa.vcpu.FollowCoresPerSocket": "0"})
    found = desired_settings(Arm.model_validate({"topology": "2x8"}), vm, host_of(release="8.0.3"))

    assert found["numa.vcpu.FollowCoresPerSocket"] == "1"
    assert FOLLOW not in found


def eight(hardware: int = 20, **arm: Any) -> dict[str, Any]:
    """The settings on ESXi 8."""
    vm = replace(vm_of(), hardware_version=hardware)
    return desired_settings(Arm.model_validate({"topology": "2x8"} | arm), vm, host_of(release="8.0.3"))


def test_esxi_8_takes_automatic_sockets_and_a_node_size() -> None:
    """0 hands cores per socket over; there is then nothing to follow."""
    automatic = eight(topology="auto")

    assert (automatic["numCPUs"], automatic["numCoresPerSocket"], automatic[FOLLOW]) == (16, 0, None)
    assert eight(cores_per_numa_node=4)["coresPerNumaNode"] == 4
    assert eight(cores_per_numa_node="auto")["coresPerNumaNode"] == 0
    assert eight(expose_vnuma_on_hot_add="on")["exposeVnumaOnCpuHotadd"] is True


@pytest.mark.parametrize(
    ("arm", "hardware", "rule", "sentence"),
    [
        ({"topology": "auto"}, 19, "T18", "topology: auto needs ESXi 8.0 and hardware version 20"),
        ({"cores_per_numa_node": 8}, 19, "T18", "cores_per_numa_node needs ESXi 8.0"),
        ({"expose_vnuma_on_hot_add": "on"}, 19, "T18", "expose_vnuma_on_hot_add needs ESXi 8.0"),
        ({"cores_per_numa_node": 3}, 20, "T13", "3 cores per NUMA node do not divide 16 vCPUs"),
        (
            {"topology": "4x6", "vcpus": 24, "cores_per_numa_node": 4},
            20,
            "T13",
            "4 cores per NUMA node are neither a multiple nor a divisor of 6",
        ),
        ({"topology": "auto", "cores_per_numa_node": 8}, 20, "T13", "with automatic cores per socket"),
        ({"topology": "auto", "vnuma_nodes": 2}, 20, "T13", "needs explicit cores per socket"),
    ],
)
def test_what_would_not_power_on_on_esxi_8_is_refused(
    arm: dict[str, Any], hardware: int, rule: str, sentence: str
) -> None:
    """With the rule's name, before anything is touched."""
    with pytest.raises(ArmImpossible, match=sentence) as refused:
        eight(hardware, **arm)
    assert refused.value.rule == rule


def test_a_node_size_that_the_vm_keeps_must_fit_the_arm_too() -> None:
    """The arm does not mention it, and the VM would not power on all the same."""
    vm = replace(vm_of(coresPerNumaNode=6, autoCoresPerNumaNode=False), hardware_version=20)
    with pytest.raises(ArmImpossible, match=r"6 cores per NUMA node \(kept from sql16\) do not divide"):
        desired_settings(Arm.model_validate({"topology": "2x8"}), vm, host_of(release="8.0.3"))


@pytest.mark.parametrize(
    ("release", "hardware", "arm", "settings"),
    [
        ("6.0.0", 11, {"topology": "2x8", "vnuma_nodes": 2}, {FOLLOW: None, MAXIMUM: None}),
        ("6.0.0", 11, {"topology": "16x1", "vnuma_nodes": 4}, {FOLLOW: None, MAXIMUM: "4"}),
        ("6.7.0", 14, {"topology": "2x8", "vnuma_nodes": 2}, {FOLLOW: "1", MAXIMUM: None}),
        ("7.0.3", 17, {"topology": "4x4", "vnuma_nodes": 2}, {FOLLOW: None, MAXIMUM: "8"}),
        ("8.0.3", 19, {"topology": "16x1", "vnuma_nodes": 16}, {FOLLOW: None, MAXIMUM: "1"}),
        (
            "8.0.3",
            20,
            {"topology": "4x4", "vnuma_nodes": 2},
            {FOLLOW: None, MAXIMUM: None, "coresPerNumaNode": 8},
        ),
        (
            "7.0.3",
            17,
            {"topology": "2x4", "vnuma_nodes": 2},
            {FOLLOW: "1", MAXIMUM: None, "numa.vcpu.min": "8"},
        ),
        ("7.0.3", 17, {"topology": "2x8", "vnuma_nodes": 2, "max_per_virtual_node": 8}, {MAXIMUM: "8"}),
    ],
)
def test_a_number_of_nodes_chooses_the_settings_of_its_release(
    release: str, hardware: int, arm: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Sockets up to 6.0, keys from 6.5, the typed field on 8.0; what the arm states itself stays."""
    vm = replace(vm_of(), hardware_version=hardware)
    found = desired_settings(Arm.model_validate(arm), vm, host_of(release=release))

    assert {name: found.get(name, "absent") for name in settings} == settings


@pytest.mark.parametrize(
    ("release", "arm", "rule", "sentence"),
    [
        ("6.0.0", {"topology": "4x4", "vnuma_nodes": 2}, "T02", "4x4 cannot have 2"),
        ("7.0.3", {"topology": "2x8", "vnuma_nodes": 3}, "T08", "cannot be spread evenly over 3"),
        ("7.0.3", {"topology": "2x8", "vnuma_nodes": 2, "cpu_hot_add": "on"}, "T11", "one vNUMA node, not 2"),
    ],
)
def test_a_number_of_nodes_that_no_setting_gives_is_refused(
    release: str, arm: dict[str, Any], rule: str, sentence: str
) -> None:
    """With the reason and a topology that would do."""
    with pytest.raises(ArmImpossible, match=sentence) as refused:
        desired(release, **arm)
    assert refused.value.rule == rule


@pytest.mark.parametrize(
    ("arm", "sentence"),
    [
        (
            {"memory_mb": 262144, "memory_reservation": "locked"},
            "reserves 262144 MB, but esx01 has 196608 MB",
        ),
        (
            {"memory_mb": 196608, "memory_reservation": "locked"},
            "reserves 196608 MB, but esx01 has 196608 MB",
        ),
        ({"memory_reservation": 131072}, "reserves 131072 MB, but sql16 has 65536 MB"),
        ({"affinity": [0, 1, 2]}, "lists 3 CPUs for 16 vCPUs"),
        ({"affinity": [*range(64)]}, "lists every logical CPU"),
        ({"affinity": {"physical_cores": [2]}}, "names NUMA node 2, but esx01 has the NUMA nodes 0, 1"),
        ({"affinity": {"physical_cores": [0], "spare": 1}}, "NUMA node 0 of esx01 has 16 physical cores"),
        ({"numa_node_affinity": [5]}, "numa_node_affinity names NUMA node 5"),
        ({"topology": "3x11"}, "33 vCPUs are more than the 32 physical cores"),
        ({"cpu_reservation": 100000}, "reserves 100000 MHz, but esx01 has 73600 MHz"),
        ({"latency_sensitivity": "high"}, "needs all memory and CPU reserved; memory and CPU is not"),
        ({"latency_sensitivity": "high", "memory_reservation": "locked"}, "reserved; CPU is not"),
        ({"latency_sensitivity": "high", "cpu_reservation": "full"}, "reserved; memory is not"),
        (
            {"latency_sensitivity": "high", "memory_reservation": "locked", "cpu_reservation": 36799},
            "reserved; CPU is not",
        ),
    ],
)
def test_what_this_host_or_vm_cannot_give_is_refused_before_anything_is_touched(
    arm: dict[str, Any], sentence: str
) -> None:
    """With both numbers in the sentence."""
    with pytest.raises(PreflightBlocked, match=sentence):
        desired(**arm)


def test_a_vm_too_old_for_vnuma_is_refused() -> None:
    """Below hardware version 8 no arm could differ from another."""
    with pytest.raises(PreflightBlocked, match="hardware version 7; vNUMA needs 8"):
        desired_settings(
            Arm.model_validate({"topology": "2x8"}), replace(vm_of(), hardware_version=7), host_of()
        )
