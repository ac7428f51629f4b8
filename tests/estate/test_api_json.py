"""VMs as govc writes them: vSphere's own fields, in several forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import vnuma_here
from vnuma.domain.vm.estate import EstateVm, NotShown
from vnuma.estate.design import read_design

CONFIG: dict[str, Any] = {
    "changeVersion": "2026-11-02T08:00:00Z",
    "name": "ledger01",
    "version": "vmx-20",
    "instanceUuid": "5036a0ff-0000-0000-0000-000000000001",
    "guestId": "windows2019srvNext_64Guest",
    "hardware": {"numCPU": 24, "numCoresPerSocket": 12, "autoCoresPerSocket": False, "memoryMB": 196608},
    "cpuAllocation": {"reservation": 2000, "limit": -1, "shares": {"shares": 7000, "level": "custom"}},
    "memoryAllocation": {"reservation": 0, "limit": -1, "shares": {"shares": 1, "level": "high"}},
    "cpuAffinity": {"affinitySet": [5, 4]},
    "latencySensitivity": {"level": "normal"},
    "cpuHotAddEnabled": True,
    "extraConfig": [{"key": "numa.vcpu.preferHT", "value": "TRUE"}, {"key": "svga.present", "value": "TRUE"}],
}


SHOWN = {
    **{"numCPUs": 24, "numCoresPerSocket": 12, "autoCoresPerSocket": False, "memoryMB": 196608},
    **{"cpuHotAddEnabled": True, "cpuShares": 7000, "memoryShares": "high"},
    **{"cpuAffinity": (4, 5), "memoryAffinity": (), "numa.vcpu.preferHT": "TRUE"},
}


def _read(folder: Path, document: object) -> EstateVm:
    file = folder / "vm.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    (vm,) = read_design(file).vms
    return vm


def _with(**changes: Any) -> dict[str, Any]:
    kept = {name: value for name, value in {**CONFIG, **changes}.items() if value is not None}
    return {"virtualMachines": [{"name": "ledger01", "config": kept}]}


def _capitals(node: Any) -> Any:
    if isinstance(node, dict):
        return {name[:1].upper() + name[1:]: _capitals(value) for name, value in node.items()}
    return [_capitals(one) for one in node] if isinstance(node, list) else node


def _properties() -> list[dict[str, Any]]:
    return [
        {"name": "name", "op": "assign", "val": {"_typeName": "string", "_value": "ledger01"}},
        {"name": "config", "op": "assign", "val": {"_typeName": "VirtualMachineConfigInfo", **CONFIG}},
    ]


@pytest.mark.parametrize(
    "document",
    [_with(), _capitals(_with()), _properties(), [{"obj": {"value": "vm-7"}, "changeSet": _properties()}]],
    ids=["vm.info", "vm.info of old govc", "object.collect of one VM", "object.collect of several"],
)
def test_a_vm_of_govc_has_the_settings_of_vsphere(tmp_path: Path, document: object) -> None:
    """In each form: what vCenter leaves out is at its default; keys that no rule reads are left out."""
    vm = _read(tmp_path, document)
    settings = vm.facts.settings
    assert settings.items() >= SHOWN.items()
    assert settings.keys().isdisjoint({"svga.present"})
    assert (vm.facts.name, vm.facts.hardware_version, set(vm.absent)) == ("ledger01", 20, {"host"})


@pytest.mark.parametrize(
    ("keys", "automatic", "cores"),
    [([], True, 0), ([{"key": "cpuid.coresPerSocket", "value": "12"}], False, 12)],
)
def test_a_dump_without_the_field_is_automatic_unless_a_key_sets_a_number(
    tmp_path: Path, keys: list[dict[str, str]], automatic: bool, cores: int
) -> None:
    """From hardware version 20 on, vSphere shows the number that it chose itself."""
    hardware = {"numCPU": 24, "numCoresPerSocket": 12, "memoryMB": 65536}
    settings = _read(tmp_path, _with(hardware=hardware, extraConfig=keys)).facts.settings
    assert (settings["autoCoresPerSocket"], settings["numCoresPerSocket"]) == (automatic, cores)


def test_what_part_of_a_vm_does_not_show_is_unknown(tmp_path: Path) -> None:
    """Chosen properties show nothing of the others: keys and affinity may be assumed, reservations not."""
    document = _with(changeVersion=None, extraConfig=None, cpuAffinity=None, memoryAllocation=None)
    vm = _read(tmp_path, document)
    assert isinstance(vm.absent["extraConfig"], NotShown)
    assert isinstance(vm.absent["cpuAffinity"], NotShown)
    assert type(vm.absent["memoryReservation"]) is str


def test_a_vm_of_govc_without_a_size_is_unread(tmp_path: Path) -> None:
    """With nothing else to check, that ends with exit code 3."""
    file = tmp_path / "vm.json"
    for hardware in ({"numCPU": "x", "memoryMB": 4096}, {"numCPU": 4}):
        file.write_text(json.dumps(_with(hardware=hardware)))
        assert vnuma_here("check", file).code == 3
