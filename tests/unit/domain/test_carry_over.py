"""What an arm keeps is the VM's own value, whichever arm was measured before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.hosts import host_of, vm_of
from vnuma.domain.arm.arm import Arm
from vnuma.domain.arm.desired_settings import own_values
from vnuma.domain.vm.change import as_written, settings_after
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import DERIVED, Settings
from vnuma.engine.cell.shape import plan_shape

HOST = host_of(release="8.0.3")
AUTOMATIC: dict[str, Any] = {"coresPerNumaNode": 8, "autoCoresPerNumaNode": True}
BY_HAND: dict[str, Any] = {"coresPerNumaNode": 1, "autoCoresPerNumaNode": False}
ARMS = [
    Arm.model_validate(arm)
    for arm in (
        {"topology": "1x1", "vcpus": 1},
        {"topology": "2x4", "vcpus": 8, "vnuma_nodes": 2, "memory_reservation": "locked"},
        {"topology": "4x4", "vcpus": 16, "vnuma_nodes": 4, "prefer_ht": "on"},
        {"topology": "2x8", "memory_mb": 32768, "cpu_reservation": "full"},
        {"topology": "1x99", "vcpus": 99},
    )
]
"""The last one is more than the host has: it sets nothing."""


def after(arm: Arm, now: VmFacts, baseline: Settings) -> dict[str, Any]:
    """The settings as asked for, once the VM is in an arm's shape; keys that are not set left out."""
    own = own_values(ARMS, baseline, now, HOST)
    shaped = settings_after(now.settings, plan_shape(arm, now, HOST, own).change.desired)
    if shaped.get("memoryReservationLockedToMax") is True:
        shaped["memoryReservation"] = shaped["memoryMB"]  # as vSphere does
    there = replace(now, settings=shaped)
    assert not plan_shape(arm, there, HOST, own).change, "a VM that is in the arm's shape"
    return {
        name: as_written(shaped, name)
        for name, value in shaped.items()
        if value is not None and name not in DERIVED
    }


@pytest.mark.parametrize("begun", [AUTOMATIC, BY_HAND], ids=["automatic nodes", "nodes by hand"])
@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("arm", range(4))
def test_an_arm_is_the_same_whatever_was_measured_before(
    begun: dict[str, Any], before: int, arm: int
) -> None:
    """From the baseline, and from the shape of every other arm."""
    vm = replace(vm_of(**begun), hardware_version=20)
    first = replace(vm, settings=after(ARMS[before], vm, vm.settings))

    assert after(ARMS[arm], first, vm.settings) == after(ARMS[arm], vm, vm.settings)


def test_what_no_arm_sets_is_not_changed() -> None:
    """Neither ESXi's own keys nor anything that the study does not touch is part of it."""
    vm = replace(vm_of(**AUTOMATIC), hardware_version=20)
    own = own_values(ARMS[:2], vm.settings, vm, HOST)
    assert not {"numa.autosize.cookie", "cpuAffinity"} & own.keys()
    assert own["numa.vcpu.min"] is None
    assert own["coresPerNumaNode"] == 0
