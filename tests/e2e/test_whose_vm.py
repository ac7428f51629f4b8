"""Which VM, whose mark, whose values: a run touches and restores nothing but what is its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

from tests.conftest import LabFactory
from tests.e2e.steps import Steps
from tests.support.lab import LabHandle
from tests.support.looking import change_by_hand, mark_by_hand, settings_now
from tests.support.site import write_inventory
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.cell.boot import boot_cell, ready_cell
from vnuma.engine.cell.shape import PowerSwitch
from vnuma.engine.lease.baseline import SomebodysChange
from vnuma.engine.lease.whose_vm import find_own
from vnuma.engine.restore.restore_leftovers import restore_after_death
from vnuma.engine.run.next_cell import NoCell, claim_next_cell
from vnuma.errors import (
    NotAtBaseline,
    RestoreConflict,
    TopologyMismatch,
)
from vnuma.vsphere.connect import connect
from vnuma.vsphere.read import read_vm
from vnuma.vsphere.wait import wait_for_task

TWO = [{"name": "sql16"}, {"name": "other"}]


def mark_of(lab: LabHandle, vm: str | None = None) -> Any:
    """The run's mark on a VM, or None."""
    text = settings_now(lab, vm)["keys"].get("vnuma.run")
    return json.loads(text) if text else None


def test_a_vm_is_restored_by_its_identity_and_not_by_its_name(tmp_path: Path, lab: LabFactory) -> None:
    """An inventory whose name means another VM now: that VM is left alone, ours is restored."""
    running = lab(vms=TWO)
    before = {name: settings_now(running, name) for name in ("sql16", "other")}
    steps = Steps.shaped(tmp_path / "a", running)
    elsewhere = steps.target.model_copy(update={"vm": running.vms["other"].path})

    restore_after_death(steps.store, {"sql16": elsewhere}, Inventory(tmp_path))

    assert {name: settings_now(running, name) for name in ("sql16", "other")} == before


def test_a_vm_whose_lab_has_ended_does_not_block_the_next_lab(tmp_path: Path, lab: LabFactory) -> None:
    """A power cut took the lab and the controller: the next lab's VM is another one, and is left alone."""
    before = lab()
    steps = Steps.shaped(tmp_path / "a", before)
    before.stop()
    after = lab()
    settings = settings_now(after)
    site = Inventory(write_inventory(tmp_path, after))

    restore_after_death(steps.store, site.targets(), site)

    assert steps.vm.at_baseline
    assert settings_now(after) == settings


def test_a_vm_of_another_vcenter_is_kept_on_the_list(tmp_path: Path, lab: LabFactory) -> None:
    """Not every VM of another vCenter is one of a lab that has ended: this one has no successor."""
    steps = Steps.shaped(tmp_path / "a", lab())
    site = Inventory(write_inventory(tmp_path, lab(vms=[{"name": "other"}])))

    with pytest.raises(NotAtBaseline):
        restore_after_death(steps.store, {"sql16": site.targets()["other"]}, site)

    assert not steps.vm.at_baseline


def test_restoring_never_takes_another_runs_mark_off(tmp_path: Path, lab: LabFactory) -> None:
    """It is a conflict, since this run has changed the VM."""
    running = lab()
    steps = Steps.shaped(tmp_path / "a", running)
    mark_by_hand(running, json.dumps({"run": "theirs.7", "holder": "ann@b", "since": "today"}))

    with pytest.raises(RestoreConflict):
        steps.restore()

    assert mark_of(running)["run"] == "theirs.7"
    assert not steps.vm.at_baseline


def test_what_somebody_left_to_vsphere_stays_automatic_with_theirs(tmp_path: Path, lab: LabFactory) -> None:
    """The number that vSphere shows for it then is not anybody's choice, and is not written."""
    running = lab(esxi={"version": "8.0.3"})
    steps = Steps.shaped(tmp_path / "a", running)
    change_by_hand(running, numCoresPerSocket=0)
    with connect(vcenter(steps.target)) as session:
        ref = find_own(session, steps.vm)
        wait_for_task(session, ref.PowerOnVM_Task(), 60, "sql16 was not powered on")

    steps.restore("theirs")

    with connect(vcenter(steps.target)) as session:
        after = read_vm(session, find_own(session, steps.vm))
    assert after.settings["autoCoresPerSocket"] is True


def test_what_somebody_sets_while_the_guest_shuts_down_is_not_overwritten(
    tmp_path: Path, lab: LabFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The VM is read again after the shutdown, which takes minutes, and the reconfigure is not made."""
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running)
    context = steps.take()

    off = PowerSwitch.off

    def slowly(self: PowerSwitch, *, back_on: bool) -> None:
        off(self, back_on=back_on)
        change_by_hand(running, cpuAllocation=vim.ResourceAllocationInfo(reservation=500))

    monkeypatch.setattr(PowerSwitch, "off", slowly)

    with pytest.raises(SomebodysChange):
        steps.shape(context)

    assert settings_now(running)["cores_per_socket"] == 4
    assert isinstance(claim_next_cell(context), NoCell)


def test_a_foreign_change_in_the_middle_of_a_cell_ends_the_vms_cells_and_waits_for_a_person(
    tmp_path: Path, lab: LabFactory
) -> None:
    """The cell does not count, no further one starts, restore refuses, and a person's choice is applied."""
    running = lab(faults=[{"kind": "vm_changed", "vm": "sql16", "boot": 2, "cpu_reservation_mhz": 500}])
    before = settings_now(running)
    steps = Steps.prepared(tmp_path / "a", running, limits={"attempts_per_cell": 3})
    context = steps.take()

    with pytest.raises(SomebodysChange):
        steps.measure(context)

    assert isinstance(claim_next_cell(context), NoCell)
    with pytest.raises(RestoreConflict):
        steps.restore()
    assert mark_of(running)["run"] == "small.1"
    assert settings_now(running)["cpuReservation"] == 500
    steps.restore("baseline")
    assert settings_now(running) == before


def test_a_boot_with_other_settings_than_the_arms_does_not_count(tmp_path: Path, lab: LabFactory) -> None:
    """Somebody lifts the affinity between reconfigure and power-on: the guest looks right."""
    running = lab()
    steps = Steps.prepared(tmp_path / "a", running)
    context = steps.take()
    attempt = steps.shape(context)
    change_by_hand(running, cpuAffinity=vim.vm.AffinityInfo(affinitySet=[]))
    boot_cell(context, attempt)

    with pytest.raises(TopologyMismatch):
        ready_cell(context, attempt)
