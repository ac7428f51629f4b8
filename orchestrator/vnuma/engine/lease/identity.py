"""Which VM is meant: the one that the run began with, whatever an inventory calls it by now."""

from __future__ import annotations

from vnuma.domain.vm.facts import VmFacts
from vnuma.errors import HostChanged, InputError, VmNotFound
from vnuma.store.rows import Vm
from vnuma.vsphere import read
from vnuma.vsphere.connect import Session
from vnuma.vsphere.refs import VmRef


def find_own(session: Session, vm: Vm) -> VmRef:
    """The run's VM by vCenter and instance UUID: another VM that has its name now is never taken for it.

    Raises VmNotFound when it is gone, or when this is another vCenter.
    """
    return find_by_key(session, vm.vm_key, f"{vm.name} ({vm.path})")


def find_by_key(session: Session, vm_key: str, name: str) -> VmRef:
    """The same by the key alone; `name` is what messages call it."""
    vcenter, _, instance_uuid = vm_key.partition("/")
    if session.about.uuid != vcenter:
        raise VmNotFound(
            f"{name} belongs to a different vCenter than {session.transport.vcenter.host}.",
            fix="Use the inventory with which the run was started: --inventory PATH",
        )
    return read.find_vm_by_uuid(session, instance_uuid)


def require_own_host(vm: Vm, here: str) -> None:
    """Every cell belongs to the host that the run began on. Raises HostChanged, which names both."""
    if here != vm.esxi_host:
        raise HostChanged(
            f"{vm.name} moved from {vm.esxi_host} to {here} during the cell.",
            fix="Prevent DRS and people from moving it (rule A01).",
        )


def refuse_other(vm: Vm, facts: VmFacts) -> None:
    """Refuse an inventory in which the VM's name stands for another VM by now. Raises InputError."""
    if facts.key != vm.vm_key:
        raise InputError(
            f"{vm.name} is {facts.path} in this inventory, not the VM with which the run started "
            f"({vm.path}).",
            fix="Use the inventory with which the run was started, or start a new run.",
        )
