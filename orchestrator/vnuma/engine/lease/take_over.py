"""Take a VM over for a run: lease, baseline and mark are durable before the first change."""

from __future__ import annotations

from contextlib import suppress

from vnuma.domain.study.study import Power as PowerRules
from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.access.context import holder
from vnuma.engine.audit.journal import Journal
from vnuma.engine.lease.baseline_document import (
    DEADLINES,
    GUEST_OF,
    GuestReader,
    baseline_document,
    baseline_guest,
    baseline_of,
    baseline_settings,
    guest_document,
    record_baseline,
    refuse_altered,
)
from vnuma.engine.lease.foreign_changes import conflicts
from vnuma.engine.lease.identity import refuse_other
from vnuma.engine.lease.run_mark import mark_text, marking, note_text, refuse_if_marked
from vnuma.errors import PreflightBlocked, VmHeld
from vnuma.store import audit, baselines, cells, leases
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.vsphere import apply, read, run_mark
from vnuma.vsphere.connect import Session, VmRef

_MARK_TRIES = 5


def take_over(
    store: Store,
    run: Run,
    vm: Vm,
    session: Session,
    ref: VmRef,
    *,
    guest: GuestReader,
    journal: Journal,
    rules: PowerRules,
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
            journal.note(DEADLINES, rules.model_dump_json())
        with store.write() as connection:
            token = leases.take_lease(connection, vm.vm_key, run.id, holder())
            cells.interrupt_attempts(connection, vm.id, token)
            if known is None:
                baselines.save(connection, vm.id, token, baseline)
            elif baseline != known:
                baselines.correct(connection, vm.id, token, baseline)
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
    changed = conflicts(baseline_settings(vm), {}, facts.settings)
    if changed:
        raise PreflightBlocked(
            f"{vm.name} was changed after {run.name} restored it: "
            f"{', '.join(item.setting for item in changed)}. Nothing was changed now.",
            fix=f"Start a new run of {run.study_name}: it will restore the VM to its present state.",
        )
