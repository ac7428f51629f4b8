"""Recipes: which settings bring an arm about on which release."""

from __future__ import annotations

from contextlib import nullcontext
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
    """There the socket is the node; a stored layout would win, so its keys go unless they are kept."""
    assert desired("6.0.0") == {"numCPUs": 16, "numCoresPerSocket": 8, FOLLOW: None, **AUTOSIZE}
    assert not AUTOSIZE.keys() & desired(numa_autosize="keep").keys()


@pytest.mark.parametrize(
    ("release", "arm", "follow"),
    [
        *((release, {}, "1") for release in ("6.5.0", "6.7.0", "7.0.3", "8.0.3")),
        ("8.0.3", {"follow_cores_per_socket": "off"}, None),
        ("8.0.3", {"follow_cores_per_socket": "keep"}, "absent"),
        ("8.0.3", {"max_per_virtual_node": 4}, None),  # two intents: no document says which one wins
    ],
)
def test_from_6_5_on_cores_per_socket_must_be_followed_on_purpose(
    release: str, arm: dict[str, Any], follow: str | None
) -> None:
    """Otherwise the whole study would compare the same vNUMA nodes with themselves."""
    assert desired(release, **arm).get(FOLLOW, "absent") == follow


@pytest.mark.parametrize(
    ("wish", "settings"),
    [
        ({"memory_reservation": "locked"}, {"memoryReservationLockedToMax": True}),
        ({"memory_reservation": "none"}, {"memoryReservationLockedToMax": False, "memoryReservation": 0}),
        ({"memory_reservation": 9}, {"memoryReservationLockedToMax": False, "memoryReservation": 9}),
        ({"memory_reservation": "keep"}, {}),
        ({"affinity": "physical_cores"}, {"cpuAffinity": tuple(range(0, 32, 2))}),
        ({"affinity": "none"}, {"cpuAffinity": ()}),
        ({"affinity": [*range(17)]}, {"cpuAffinity": tuple(range(17))}),
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
    sized = eight(cores_per_numa_node=4)
    assert (sized["coresPerNumaNode"], sized[FOLLOW]) == (4, None)
    assert eight(cores_per_numa_node="auto")["coresPerNumaNode"] == 0
    assert eight(expose_vnuma_on_hot_add="on")["exposeVnumaOnCpuHotadd"] is True


@pytest.mark.parametrize(
    ("arm", "hardware", "rule"),
    [
        ({"topology": "auto"}, 19, "T18"),
        ({"cores_per_numa_node": 8}, 19, "T18"),
        ({"expose_vnuma_on_hot_add": "on"}, 19, "T18"),
        ({"cores_per_numa_node": 3}, 20, "T13"),
        ({"topology": "4x6", "vcpus": 24, "cores_per_numa_node": 4}, 20, "T13"),
        ({"topology": "auto", "cores_per_numa_node": 8}, 20, "T13"),
        ({"topology": "auto", "vnuma_nodes": 2}, 20, "T13"),
    ],
)
def test_what_would_not_power_on_on_esxi_8_is_refused(arm: dict[str, Any], hardware: int, rule: str) -> None:
    """With the rule's name, before anything is touched."""
    with pytest.raises(ArmImpossible) as refused:
        eight(hardware, **arm)
    assert refused.value.rule == rule


@pytest.mark.parametrize(("release", "advised"), [("8.0.3", True), ("6.0.0", False)])
def test_an_upgrade_of_the_vm_is_advised_where_its_host_runs_it(release: str, advised: bool) -> None:
    """An ESXi 6.0 has no hardware version 20."""
    vm = replace(vm_of(), hardware_version=11)
    with pytest.raises(ArmImpossible) as refused:
        desired_settings(Arm.model_validate({"topology": "auto"}), vm, host_of(release=release))
    assert ("upgrade" in str(refused.value.fix)) == advised


def test_a_node_size_that_the_vm_keeps_must_fit_the_arm_too() -> None:
    """The arm does not mention it, and the VM would not power on all the same."""
    vm = replace(vm_of(coresPerNumaNode=6, autoCoresPerNumaNode=False), hardware_version=20)
    with pytest.raises(ArmImpossible) as refused:
        desired_settings(Arm.model_validate({"topology": "8x2"}), vm, host_of(release="8.0.3"))
    assert refused.value.rule == "T13"


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
    ("release", "arm", "rule"),
    [
        ("6.0.0", {"topology": "4x4", "vnuma_nodes": 2}, "T02"),
        ("7.0.3", {"topology": "2x8", "vnuma_nodes": 3}, "T08"),
        ("7.0.3", {"topology": "2x8", "vnuma_nodes": 2, "cpu_hot_add": "on"}, "T11"),
    ],
)
def test_a_number_of_nodes_that_no_setting_gives_is_refused(
    release: str, arm: dict[str, Any], rule: str
) -> None:
    """With the reason and a topology that would do."""
    with pytest.raises(ArmImpossible) as refused:
        desired(release, **arm)
    assert refused.value.rule == rule
    assert refused.value.fix


@pytest.mark.parametrize(
    ("arm", "possible"),
    [
        ({"memory_mb": 262144, "memory_reservation": "locked"}, None),
        ({"memory_mb": 196608, "memory_reservation": "locked"}, {"memory_mb": 98304}),
        ({"memory_reservation": 131072}, {"memory_reservation": 65536}),
        ({"affinity": [0, 1, 2]}, {"affinity": [*range(16)]}),
        ({"affinity": [*range(64)]}, {"affinity": [*range(63)]}),
        ({"affinity": {"physical_cores": [2]}}, {"affinity": {"physical_cores": [1]}}),
        ({"affinity": {"physical_cores": [0], "spare": 1}}, {"affinity": {"physical_cores": [0]}}),
        ({"numa_node_affinity": [5]}, {"numa_node_affinity": [1]}),
        ({"topology": "3x11"}, {"topology": "2x16"}),
        ({"cpu_reservation": 100000}, {"cpu_reservation": 73600}),
        ({"latency_sensitivity": "high"}, None),
        ({"latency_sensitivity": "high", "memory_reservation": "locked"}, {"cpu_reservation": "full"}),
        ({"latency_sensitivity": "high", "cpu_reservation": "full"}, {"memory_reservation": "locked"}),
        (
            {"latency_sensitivity": "high", "memory_reservation": "locked", "cpu_reservation": 36799},
            {"cpu_reservation": 36800},
        ),
    ],
)
def test_what_this_host_or_vm_cannot_give_is_refused_before_anything_is_touched(
    arm: dict[str, Any], possible: dict[str, Any] | None
) -> None:
    """And what is just possible with the same arm is not."""
    with pytest.raises(PreflightBlocked):
        desired(**arm)
    if possible:
        assert desired(**arm | possible)


@pytest.mark.parametrize(("hardware", "possible"), [(7, False), (8, True)])
def test_a_vm_too_old_for_vnuma_is_refused(hardware: int, possible: bool) -> None:
    """Below hardware version 8 no arm could differ from another."""
    with nullcontext() if possible else pytest.raises(PreflightBlocked):
        desired_settings(
            Arm.model_validate({"topology": "2x8"}), replace(vm_of(), hardware_version=hardware), host_of()
        )
