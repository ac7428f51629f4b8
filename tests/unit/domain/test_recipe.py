"""Recipes: which settings bring an arm about on which release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.hosts import host_of, vm_of
from vnuma.domain.arm import Arm
from vnuma.domain.recipe import desired_settings
from vnuma.errors import PreflightBlocked

AUTOSIZE = {"numa.autosize.cookie": None, "numa.autosize.vcpu.maxPerVirtualNode": None}
FOLLOW = "numa.vcpu.followcorespersocket"


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
        (32768, {"memoryReservationLockedToMax": False, "memoryReservation": 32768}),
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
    ("arm", "sentence"),
    [
        (
            {"memory_mb": 262144, "memory_reservation": "locked"},
            "reserves 262144 MB, but esx01 has 196608 MB",
        ),
        ({"memory_reservation": 131072}, "reserves 131072 MB, but sql16 has 65536 MB"),
        ({"affinity": [0, 1, 2]}, "lists 3 CPUs for 16 vCPUs"),
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
