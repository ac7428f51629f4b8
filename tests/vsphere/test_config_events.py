"""A VM's events from a vCenter: the newest count, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyVmomi import vim

from tests.conftest import LabFactory
from tests.vsphere.support import vcenter_of
from vnuma.domain.vm.change import change_to
from vnuma.domain.vm.setting import DERIVED, TYPED, Value
from vnuma.vsphere.apply import specs_for
from vnuma.vsphere.config_events import read_config_events
from vnuma.vsphere.connect import Session, connect
from vnuma.vsphere.read import find_vm, read_vm
from vnuma.vsphere.wait import wait_for_task

SITE = {"name": "events", "vms": [{"name": "sql16", "power": "off"}]}
SIZES = [2048 + 4 * number for number in range(1, 14)]
"""More than a collector's latest page has."""


@pytest.fixture
def session(lab: LabFactory) -> Iterator[Session]:
    """A vCenter whose VM was given one memory size after the other."""
    with connect(vcenter_of(lab(SITE))) as opened:
        ref: Any = find_vm(opened, "sql16")
        for size in SIZES:
            wait_for_task(opened, ref.ReconfigVM_Task(vim.vm.ConfigSpec(memoryMB=size)), 60, "by hand")
        yield opened


def _sizes(session: Session, **bound: int) -> tuple[list[object], bool]:
    ref: Any = find_vm(session, "sql16")
    found, older = read_config_events(session, ref._GetMoId(), **bound)
    return [event.wrote["memoryMB"] for event in found], older


def test_every_event_is_read_once_the_newest_first(session: Session) -> None:
    """Those of the latest page, and those before it."""
    assert _sizes(session) == (SIZES[::-1], False)
    assert _sizes(session, most=len(SIZES)) == (SIZES[::-1], False)


def test_every_setting_that_a_request_can_write_is_read_from_its_event(lab: LabFactory) -> None:
    """A setting that is left out would have no author when its VM differs from a design."""
    values: dict[str, Value] = {
        **dict.fromkeys(TYPED, 1),
        **dict.fromkeys([name for name, one in TYPED.items() if one.unset is False], True),
        **{"cpuAffinity": (0,), "memoryAffinity": (0,), "latencySensitivity": "low", "cpuShares": "high"},
        **{"memoryShares": "high", "memoryMB": 4096, "memoryReservation": 4096, "memoryLimit": 8192},
    }
    with connect(vcenter_of(lab(SITE | {"esxi": {"version": "8.0.3"}}))) as session:
        ref: Any = find_vm(session, "sql16")
        before = read_vm(session, ref).settings
        (spec,) = specs_for(change_to(before, values), before)
        wait_for_task(session, ref.ReconfigVM_Task(spec), 60, "by hand")
        (event, *_), _ = read_config_events(session, ref._GetMoId(), most=1)

    assert event.wrote.keys() >= TYPED.keys() - DERIVED


@pytest.mark.parametrize("most", [4, 12])
def test_beyond_a_bound_the_oldest_are_left_out_and_said(session: Session, most: int) -> None:
    """Within the latest page, and beyond it."""
    assert _sizes(session, most=most) == (SIZES[: -most - 1 : -1], True)
