"""Take a VM over for a run: lease, baseline and mark are durable before the first change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import LEASE_PREFIX, Power, Value
from vnuma.engine.access.places import audit_file
from vnuma.engine.lease.audit import Journal, noted_here
from vnuma.engine.lease.context import holder
from vnuma.engine.lease.foreign_changes import conflicts
from vnuma.engine.lease.identity import refuse_other
from vnuma.errors import NotAtBaseline, PreflightBlocked, StoreError, VmHeld
from vnuma.store import audit, cells, leases, vms
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.store.types import canonical_json, iso
from vnuma.vsphere import apply, lease_mark, read
from vnuma.vsphere.connect import Session
from vnuma.vsphere.refs import VmRef

_GUEST_OF = "guest_of"
"""In a baseline: the address of the SQL Server whose settings it contains."""

_RECORDED = "baseline"
"""The audit log's action for the hash of a baseline."""

_MARK_TRIES = 5

NOT_KNOWN = "not known until the VM is on"
"""In a planned diff: a SQL Server value that cannot be read, since the VM is off."""


@dataclass(frozen=True)
class Guest:
    """Where SQL Server's part of a baseline is read: the server in the inventory, proven or not."""

    where: str
    read: Callable[[], dict[str, object]]
    """Reads the SQL Server settings that the study changes. Raises PreflightBlocked."""


def refuse_if_marked(vm: VmFacts, run: Run | None = None) -> None:
    """Raise VmHeld if another run has marked the VM, with its holder and time."""
    mark = foreign_mark(vm.lease, run)
    if mark:
        raise VmHeld(
            f"{vm.name} is under study by {mark['holder']}, run {mark['run']}, since {mark['since']}.",
            fix=f"Wait, or ask them to: vnuma stop {mark['run']}. Nothing was changed.",
        )


def take_over(
    store: Store, run: Run, vm: Vm, session: Session, ref: VmRef, *, guest: Guest, journal: Journal
) -> int:
    """Lease the VM to the run, commit its baseline, and mark it in vSphere. Returns the fencing token.

    The mark is written with the VM's changeVersion, so of two controllers only one succeeds; the VM and its
    baseline are then read again. Raises VmHeld when another run has it, InputError when it is not the run's
    VM, PreflightBlocked when it was changed after this run restored it, NotAtBaseline as `refuse_altered`.
    """
    refuse_altered(store, run, vm)  # as its restore would, before anything is changed or corrected
    known = vm.baseline
    for _ in range(_MARK_TRIES):
        facts = read.read_vm(session, ref)
        baseline = plan_baseline(store, run, vm, facts, guest)
        if baseline != known:
            if known is not None:  # stays the store's if this process ends here
                record_baseline(journal, known)
            record_baseline(journal, baseline)
        with store.write() as connection:
            token = leases.take_lease(connection, vm.vm_key, run.id, holder())
            cells.interrupt_attempts(connection, vm.id, token)
            if known is None:
                vms.save_baseline(connection, vm.id, token, baseline)
            elif baseline != known:
                vms.correct_baseline(connection, vm.id, token, baseline)
        known = baseline
        with suppress(apply.ChangedMeanwhile):
            with journal.change("mark", [marking(run, facts)]):
                lease_mark.write_mark(session, ref, mark_text(run, token), facts.change_version)
            lease_mark.write_note(session, ref, note_text(run))
            return token
    raise VmHeld(
        f"{vm.name} keeps changing while vnuma tries to mark it.",
        fix="Look at the VM's recent tasks in vCenter. No setting was changed.",
    )


def plan_baseline(store: Store, run: Run, vm: Vm, facts: VmFacts, guest: Guest) -> dict[str, object]:
    """The baseline that `take_over` has committed or would commit. Changes nothing.

    Until the run's first write inside the guest, nothing has proven that SQL Server's settings came from the
    VM's own server, so they are read again; if it does not answer, values from the same address are kept.
    Raises VmHeld, InputError and PreflightBlocked as `take_over` does.
    """
    refuse_other(vm, facts)
    refuse_if_marked(facts, run)
    _refuse_if_changed_since(run, vm, facts)
    if vm.baseline is None:
        return baseline_document(facts, guest)
    document = _document(vm)
    if not document.get("guest") or changed_sql_server(store, run, vm):
        return document
    try:
        return document | _guest_document(guest)
    except PreflightBlocked:
        if document.get(_GUEST_OF, guest.where) != guest.where:
            raise
        return document


def record_baseline(journal: Journal, baseline: object) -> None:
    """Note the hash of a baseline in the audit log, before the store has it: see `refuse_altered`."""
    journal.note(_RECORDED, _hash_of(baseline))


def refuse_altered(store: Store, run: Run, vm: Vm) -> None:
    """Raise NotAtBaseline for a baseline that is none of those which this machine has recorded for the run.

    Whoever can write the store can add a corrected one. Silent where this machine has recorded none.
    """
    if vm.baseline is None:
        return
    recorded = [line.detail for line in noted_here(store, run, vm.vm_key, _RECORDED)]
    if recorded and _hash_of(vm.baseline) not in recorded:
        raise NotAtBaseline(
            f"{vm.name} may not be at its baseline: the one in the store was not recorded on this machine, "
            f"whose audit log has {recorded[-1]}. Nothing was changed now.",
            fix="If another machine has resumed the run, continue there. If that one is gone, and "
            f"vnuma baseline show {vm.name} is right, move {audit_file(store.place)} away first. Otherwise "
            f"somebody altered the store: vnuma audit {run.name} shows the values before each change, and "
            "vnuma audit verify whether the log is intact.",
        )


def _hash_of(baseline: object) -> str:
    return f"sha256 {hashlib.sha256(canonical_json(baseline).encode()).hexdigest()}"


def changed_sql_server(store: Store, run: Run, vm: Vm) -> bool:
    """Whether the audit log shows that the run changed SQL Server on this VM, or tried to."""
    inside = baseline_guest(vm)
    with store.read() as connection:
        written = audit.lines(connection, run.id, vm_key=vm.vm_key)
    return any(edit["setting"] in inside for line in written for edit in line.change)


def marking(run: Run, facts: VmFacts) -> Edit:
    """The mark as a change; a VM that this run has marked already is marked again."""
    return Edit(lease_mark.LEASE_KEY, run.name if facts.lease else None, run.name)


def _refuse_if_changed_since(run: Run, vm: Vm, facts: VmFacts) -> None:
    """Refuse a VM that was restored and then changed: this run would undo that change."""
    if vm.baseline is None or vm.restored_at is None:
        return
    changed = conflicts(baseline_settings(vm), {}, facts.settings)
    if changed:
        raise PreflightBlocked(
            f"{vm.name} was changed after {run.name} restored it: "
            f"{', '.join(item.setting for item in changed)}. Nothing was changed now.",
            fix=f"Start a new run of {run.study_name}: it will restore the VM to its present state.",
        )


def baseline_document(vm: VmFacts, guest: Guest) -> dict[str, object]:
    """Everything to restore, as JSON: settings, SQL Server's settings, power state and host."""
    return {
        "settings": {name: value for name, value in vm.settings.items() if not name.startswith(LEASE_PREFIX)},
        **_guest_document(guest),
        "power": str(vm.power),
        "host": vm.host_name,
        "hardware_version": vm.hardware_version,
    }


def _guest_document(guest: Guest) -> dict[str, object]:
    return {"guest": guest.read(), _GUEST_OF: guest.where}


def baseline_settings(vm: Vm) -> dict[str, Value]:
    """The settings of a stored baseline, with lists turned back into tuples."""
    settings = _document(vm)["settings"]
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


def baseline_guest(vm: Vm) -> dict[str, Any]:
    """SQL Server's settings in the baseline, by key; empty for none."""
    guest: dict[str, Any] = _document(vm).get("guest", {})
    return guest


def baseline_power(vm: Vm) -> Power:
    """The power state to restore."""
    return Power(str(_document(vm)["power"]))


def _document(vm: Vm) -> dict[str, Any]:
    if not isinstance(vm.baseline, dict):
        raise StoreError(
            f"{vm.name} has no baseline in the store.", fix="Nothing was changed; start the run again."
        )
    return vm.baseline


def mark_text(run: Run, token: int) -> str:
    """The mark on a VM under study: extraConfig `vnuma.run`."""
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    mark = {"run": run.name, "created": iso(run.created_at), "token": token, "holder": holder()}
    return json.dumps(mark | {"since": since}, sort_keys=True)


def note_text(run: Run) -> str:
    """The same for people, shown as a custom attribute in the vSphere Client."""
    since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"under study by {holder()}, run {run.name}, since {since}"


def foreign_mark(text: str | None, run: Run | None) -> dict[str, str] | None:
    """The mark if it is another run's. Run names do not identify one: each store has its own quick.1."""
    mark = parse_mark(text)
    ours = mark and run and (mark["run"], mark.get("created")) == (run.name, iso(run.created_at))
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


def host_document(host: HostFacts) -> dict[str, object]:
    """The facts about the host that decide whether results are comparable."""
    return {
        "name": host.name,
        "esxi": str(host.release),
        "model": f"{host.vendor} {host.model}",
        "cpu": host.cpu_model,
        "bios": host.bios,
        "packages": host.packages,
        "cores": host.cores,
        "threads": host.threads,
        "memory_mb": host.memory_mb,
        "numa_nodes": [{"id": n.id, "cpus": list(n.cpus), "memory_mb": n.memory_mb} for n in host.numa_nodes],
    }
