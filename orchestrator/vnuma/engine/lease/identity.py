"""Find the run's own VM, whatever the inventory calls it now."""

from __future__ import annotations

from vnuma.domain.vm.facts import VmFacts
from vnuma.errors import HostChanged, InputError, VmNotFound
from vnuma.store.rows import Vm
from vnuma.vsphere import read
from vnuma.vsphere.connect import Session, VmRef
from vnuma.words.provenance import scenario_of


def find_own(session: Session, vm: Vm) -> VmRef:
    """The run's VM by vCenter and instance UUID, never another VM that now has its name.

    Raises VmNotFound when it is gone, or this is another vCenter.
    """
    return find_by_key(session, vm.vm_key, f"{vm.name} ({vm.path})")


def find_by_key(session: Session, vm_key: str, name: str) -> VmRef:
    """The same by key; `name` is used in messages."""
    vcenter, _, instance_uuid = vm_key.partition("/")
    if session.about.uuid != vcenter:
        raise VmNotFound(
            f"{name} belongs to a different vCenter than {session.transport.vcenter.host}.",
            fix="Use the inventory with which the run was started: --inventory PATH",
        )
    return read.find_vm_by_uuid(session, instance_uuid)


def ended_with_its_lab(session: Session, lab: str | None, vm_key: str) -> bool:
    """Whether the VM was one of this `lab`, an earlier one: the lab that answers now has another VM with its
    UUID.

    A real VM's UUID is in no lab, so a real VM is never given up.
    """
    vcenter, _, instance_uuid = vm_key.partition("/")
    if lab is None or scenario_of(session.about.name) is None or session.about.uuid == vcenter:
        return False
    try:
        read.find_vm_by_uuid(session, instance_uuid)
    except VmNotFound:
        return False
    return True


def require_own_host(vm: Vm, here: str) -> None:
    """Require the host on which the run began. Raises HostChanged with both hosts."""
    if here != vm.esxi_host:
        raise HostChanged(
            f"{vm.name} moved from {vm.esxi_host} to {here} during the cell.",
            fix="Prevent DRS and people from moving it (rule A01).",
        )


def refuse_other(vm: Vm, facts: VmFacts) -> None:
    """Raise InputError for an inventory in which the VM's name now means another VM."""
    if facts.key != vm.vm_key:
        now = f"{facts.path} in this inventory" if facts.path != vm.path else "another VM with the same path"
        raise InputError(
            f"{vm.name} is {now}, not the VM with which the run started ({vm.path}).",
            fix="Use the inventory with which the run was started, or start a new run.",
        )
