"""The baseline of a VM: taken over before the first change, and compared to find changes by others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from vnuma.domain.study.study import PowerRules, Study
from vnuma.domain.vm.change import change_back, value_words
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import LEASE_PREFIX, WRITTEN_BY_ESXI, Power, Settings, Value
from vnuma.engine.access.context import VmContext, holder
from vnuma.engine.access.places import audit_file
from vnuma.engine.audit.log import Journal, from_json, journal_of, noted_here
from vnuma.engine.lease.whose_vm import mark_text, marking, note_text, refuse_if_marked, refuse_other
from vnuma.errors import NotAtBaseline, PreflightBlocked, StoreError, VmHeld
from vnuma.store import attempts, audit, cells, leases
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.store.tables import canonical_json
from vnuma.vsphere import apply, read, run_mark
from vnuma.vsphere.apply import ChangedMeanwhile
from vnuma.vsphere.connect import Session, VmRef
from vnuma.words.plain_text import aligned

GUEST_OF = "guest_of"
"""In a baseline: the address of the SQL Server whose settings it contains."""

_RECORDED = "baseline"
"""The audit log's action for the hash of a baseline."""

DEADLINES = "deadlines"
"""The audit log's action for the study's deadlines, which a restore from the log alone keeps."""

NOT_KNOWN = "not known until the VM is on"
"""In a planned diff: a SQL Server value that cannot be read, since the VM is off."""


@dataclass(frozen=True)
class GuestReader:
    """Where SQL Server's part of a baseline is read: the server in the inventory, proven or not."""

    where: str
    read: Callable[[], dict[str, object]]
    """Reads the SQL Server settings that the study changes. Raises PreflightBlocked."""


def baseline_document(vm: VmFacts, guest: GuestReader) -> dict[str, object]:
    """Everything to restore, as JSON: settings, SQL Server's settings, power state and host."""
    return {
        "settings": {name: value for name, value in vm.settings.items() if not name.startswith(LEASE_PREFIX)},
        **guest_document(guest),
        "power": str(vm.power),
        "host": vm.host_name,
        "hardware_version": vm.hardware_version,
    }


def guest_document(guest: GuestReader) -> dict[str, object]:
    """SQL Server's part of a baseline."""
    return {"guest": guest.read(), GUEST_OF: guest.where}


def baseline_settings(vm: Vm) -> dict[str, Value]:
    """The settings of a stored baseline, with lists turned back into tuples."""
    return {name: from_json(value) for name, value in baseline_of(vm)["settings"].items()}


def baseline_guest(vm: Vm) -> dict[str, Any]:
    """SQL Server's settings in the baseline, by key; empty for none."""
    guest: dict[str, Any] = baseline_of(vm).get("guest", {})
    return guest


def baseline_power(vm: Vm) -> Power:
    """The power state to restore."""
    return Power(str(baseline_of(vm)["power"]))


def baseline_of(vm: Vm) -> dict[str, Any]:
    """The document as stored. Raises StoreError where there is none."""
    if not isinstance(vm.baseline, dict):
        raise StoreError(
            f"{vm.name} has no baseline in the store.", fix="Nothing was changed; start the run again."
        )
    return vm.baseline


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


@dataclass(frozen=True)
class ForeignChange:
    """A setting that somebody else changed: before the study, as we set it, and now."""

    setting: str
    baseline: Value
    ours: Value
    now: Value


def written(changes: Iterable[list[dict[str, Any]]]) -> dict[str, set[Value]]:
    """Every value that a run's attempts wrote, by setting; values that they found may be anybody's."""
    values: dict[str, set[Value]] = {}
    for change in changes:
        for edit in change:
            values.setdefault(edit["setting"], set()).add(from_json(edit["after"]))
    return values


def conflicts(baseline: Settings, ours: Mapping[str, set[Value]], now: Settings) -> list[ForeignChange]:
    """Settings whose present value is neither the baseline's nor one that this run wrote."""
    found = []
    for edit in change_back(now, baseline):
        name = edit.setting
        values = ours.get(name, set())
        if name.lower() in WRITTEN_BY_ESXI or any(
            not change_back({name: value}, {name: edit.before}) for value in values
        ):
            continue
        if name == "memoryReservation" and "memoryReservationLockedToMax" in ours:
            continue  # vSphere moves the reservation with the lock
        found.append(ForeignChange(name, edit.after, max(values, key=str, default=None), edit.before))
    return found


_shown = partial(value_words, unset="none")


def conflict_words(vm: str, foreign: list[ForeignChange]) -> str:
    """The three-way difference as a text table."""
    rows = [("setting", "baseline", "we set", "now")]
    rows += [(item.setting, _shown(item.baseline), _shown(item.ours), _shown(item.now)) for item in foreign]
    said = f"{vm} was changed by somebody else since the study began. Nothing was changed now."
    return "\n".join([said, *aligned(rows)])


class SomebodysChange(ChangedMeanwhile):
    """A setting has neither the baseline's value nor one that this run wrote."""

    reason = "changed_by_somebody"
    outcome = "invalid"


def refuse_foreign_changes(context: VmContext, vm: VmFacts) -> None:
    """Neither overwrite nor measure what somebody else has changed during the study. Raises SomebodysChange
    with each setting's three values.
    """
    changes = context.store.ask(attempts.changes_of_vm, context.vm.id)
    refuse_settings(vm.name, conflicts(baseline_settings(context.vm), written(changes), vm.settings))


def refuse_settings(name: str, foreign: list[ForeignChange]) -> None:
    """Raise SomebodysChange for settings that somebody else has changed."""
    if foreign:
        raise SomebodysChange(
            conflict_words(name, foreign),
            fix=f"Its cells end here. Choose: vnuma restore {name} --theirs | --baseline",
        )


_MARK_TRIES = 5


def take_over(free: VmContext, session: Session, ref: VmRef, guest: GuestReader) -> int:
    """Lease the VM to the run, commit its baseline, and mark it in vSphere. Returns the fencing token.

    The mark is written with the VM's changeVersion, so of two controllers only one succeeds; the VM and its
    baseline are then read again. Raises VmHeld when another run has it, InputError when it is not the run's
    VM, PreflightBlocked when it was changed after this run restored it, NotAtBaseline as `refuse_altered`.
    """
    store, run, vm, journal = free.store, free.run, free.vm, journal_of(free)
    refuse_altered(store, run, vm)  # as its restore would, before anything is changed or corrected
    known = vm.baseline
    for _ in range(_MARK_TRIES):
        facts = read.read_vm(session, ref)
        baseline = plan_baseline(store, run, vm, facts, guest)
        token = lease_with_baseline(store, run, replace(vm, baseline=known), baseline, journal, free.study)
        known = baseline
        with suppress(apply.ChangedMeanwhile):
            with journal.change("mark", [marking(run, facts)]):
                run_mark.write_mark(session, ref, mark_text(run, token), facts.change_version)
            run_mark.write_note(session, ref, note_text(run))
            return token
    raise VmHeld(
        f"{vm.name} keeps changing while vnuma tries to mark it.",
        fix="Look at the VM's recent tasks in vCenter. No setting was changed.",
    )


def lease_with_baseline(
    store: Store, run: Run, vm: Vm, baseline: dict[str, object], journal: Journal, study: Study
) -> int:
    """Lease the VM to the run and store its baseline, noted in the audit log first. Returns the token."""
    known = vm.baseline
    if baseline != known:
        if known is not None:  # stays the store's if this process ends here
            record_baseline(journal, known)
        record_baseline(journal, baseline)
        journal.note(DEADLINES, deadlines(study))
    with store.write() as connection:
        token = leases.take_lease(connection, vm.vm_key, run.id, holder())
        cells.interrupt_attempts(connection, vm.id, token)
        if baseline != known:
            (cells.save if known is None else cells.correct)(connection, vm.id, token, baseline)
    return token


def deadlines(study: Study) -> str:
    """The study's deadlines for the audit log, with that of one execution of its workload."""
    return json.dumps(study.power.model_dump(mode="json") | {"execution_s": study.workload.timeout_s})


def noted_deadlines(text: str) -> tuple[PowerRules, float]:
    """As `deadlines` wrote them; an earlier version noted no execution's, which is 0 then."""
    noted = json.loads(text)
    execution_s = float(noted.pop("execution_s", 0))
    return PowerRules.model_validate(noted), execution_s


def plan_baseline(store: Store, run: Run, vm: Vm, facts: VmFacts, guest: GuestReader) -> dict[str, object]:
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
    document = baseline_of(vm)
    if not document.get("guest") or changed_sql_server(store, run, vm):
        return document
    try:
        return document | guest_document(guest)
    except PreflightBlocked:
        if document.get(GUEST_OF, guest.where) != guest.where:
            raise
        return document


def changed_sql_server(store: Store, run: Run, vm: Vm) -> bool:
    """Whether the audit log shows that the run changed SQL Server on this VM, or tried to."""
    inside = baseline_guest(vm)
    with store.read() as connection:
        written = audit.lines(connection, run.id, vm_key=vm.vm_key)
    return any(edit["setting"] in inside for line in written for edit in line.change)


def _refuse_if_changed_since(run: Run, vm: Vm, facts: VmFacts) -> None:
    """Refuse a VM that was restored and then changed: this run would undo that change."""
    if vm.baseline is None or vm.restored_at is None:
        return
    if changed := conflicts(baseline_settings(vm), {}, facts.settings):
        raise PreflightBlocked(
            f"{vm.name} was changed after {run.name} restored it: "
            f"{', '.join(item.setting for item in changed)}. Nothing was changed now.",
            fix=f"Start a new run of {run.study_name}: it will restore the VM to its present state.",
        )
