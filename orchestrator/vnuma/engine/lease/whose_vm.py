"""Whose a VM is: the run's own, whatever the inventory calls it now, and the mark of a run (extraConfig
`vnuma.run`).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.access.context import holder
from vnuma.errors import HostChanged, InputError, VmHeld, VmNotFound
from vnuma.store.rows import Run, Vm
from vnuma.store.tables import iso
from vnuma.vsphere import read, run_mark
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


def refuse_if_marked(vm: VmFacts, run: Run | None = None) -> None:
    """Raise VmHeld if another run has marked the VM, with its holder and time."""
    mark = foreign_mark(vm.lease, *((run.name, iso(run.created_at)) if run else (None, None)))
    if mark:
        raise VmHeld(
            f"{vm.name} is under study by {mark['holder']}, run {mark['run']}, since {mark['since']}.",
            fix=f"Wait, or ask them to: vnuma stop {mark['run']}. Nothing was changed.",
        )


def marking(run: Run, facts: VmFacts) -> Edit:
    """The mark as a change; a VM that this run has marked already is marked again."""
    return Edit(run_mark.LEASE_KEY, run.name if facts.lease else None, run.name)


def mark_text(run: Run, token: int) -> str:
    """The mark on a VM under study: extraConfig `vnuma.run`."""
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    mark = {"run": run.name, "created": iso(run.created_at), "token": token, "holder": holder()}
    return json.dumps(mark | {"since": since}, sort_keys=True)


def note_text(run: Run) -> str:
    """The same for people, shown as a custom attribute in the vSphere Client."""
    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"under study by {holder()}, run {run.name}, since {since}"


def foreign_mark(text: str | None, run: str | None, created: str | None) -> dict[str, str] | None:
    """The mark if it is not that of the `run` created then. A name identifies none, since each store has its
    own quick.1; it has to do where `created` is not known.
    """
    mark = parse_mark(text)
    ours = mark and mark["run"] == run and created in (None, mark.get("created"))
    return None if ours else mark


def parse_mark(text: str | None) -> dict[str, str] | None:
    """Parse a mark. Any other text counts as the mark of another run."""
    if not text:
        return None
    unknown = {"run": "an unknown run", "holder": "somebody", "since": "an unknown time"}
    try:
        mark = json.loads(text)
    except ValueError:
        return unknown
    return unknown | {key: str(value) for key, value in mark.items()} if isinstance(mark, dict) else unknown
