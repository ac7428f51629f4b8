"""Put a VM back as its baseline says. One function, whoever asks: the end of a run, recovery, a person.

Restoring raises the lease's token first, so that every other process of the run stops at its next
write; then it waits for the VM's lock and for vSphere tasks under way, and only then acts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from vnuma.domain.change import Change, change_back, differences, net
from vnuma.domain.facts import VmFacts
from vnuma.domain.setting import Power, is_evidence
from vnuma.engine import late_log
from vnuma.engine.audit import Journal
from vnuma.engine.back import Choice, is_anothers, settings_back, unmarking
from vnuma.engine.baseline import baseline_power, foreign_mark
from vnuma.engine.connections import sql_server, vcenter
from vnuma.engine.identity import find_own
from vnuma.engine.locking import vm_lock
from vnuma.engine.persist import Patience, persist, tell_of_vm
from vnuma.engine.poweroff import POWER_OFF, POWER_ON, Fence, PowerRules, shut_down
from vnuma.engine.restore_guest import GuestBack, parts_of
from vnuma.engine.restored import Restored, fence_off, give_up, may_be_away, record
from vnuma.engine.sql_identity import Endpoint
from vnuma.engine.target import Target
from vnuma.errors import LeaseLost, NotAtBaseline, RestoreConflict, StoreError, VnumaError
from vnuma.store import leases
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.store.states import RestoreOutcome
from vnuma.vsphere import apply, lease_mark, lease_note, power, read
from vnuma.vsphere.connect import Session, connect
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.wait import settle

UNMARK_TRIES = 5


def restore(
    store: Store,
    run: Run,
    vm: Vm,
    target: Target,
    *,
    home: Path,
    choice: Choice = "refuse",
    rules: PowerRules,
    say: Callable[[str], None] = lambda _: None,
) -> Restored:
    """Put one VM back and give up its lease. Safe to repeat.

    Raises RestoreConflict when somebody else changed the VM and `choice` is `refuse`, NotAtBaseline
    when it could not be put back, be it that the store cannot be read: the lease is kept in both. A
    store that cannot be written does not keep a VM from being put back: StoreError then says that it was.
    """
    try:
        token, broken = fence_off(store, run, vm)
    except StoreError as error:
        raise may_be_away(vm.name, error) from error

    def fence() -> None:
        with store.read() as connection:
            leases.require_current(connection, vm.vm_key, token)

    # A line that cannot be written does not keep a VM from being put back; `give_up` tells of the store.
    journal = Journal(store, vm.vm_key, vm.name, run, lost=lambda _: None)

    def once(_tries: int) -> Restored:
        lock = vm_lock(home, vm.vm_key, vm.name, wait_s=rules.step_s, say=say)
        with lock, connect(vcenter(target)) as session:
            return _on_vsphere(store, run, vm, target, session, choice, rules, fence, journal, say)

    try:
        outcome = persist(once, Patience(rules.retry_s), tell_of_vm(store, vm, "putting back", say))
    except RestoreConflict as error:
        record(store, vm, token, RestoreOutcome.CONFLICT, error.what)
        raise
    except LeaseLost:
        raise  # another process puts it back
    except (VnumaError, OSError) as error:
        away = error if isinstance(error, NotAtBaseline) else may_be_away(vm.name, error)
        record(store, vm, token, RestoreOutcome.FAILED, away.what)
        raise away from error
    settled = RestoreOutcome.THEIRS if choice == "theirs" else RestoreOutcome.RESTORED
    give_up(store, vm, token, settled, outcome.words, broken)
    return outcome


def _on_vsphere(
    store: Store,
    run: Run,
    vm: Vm,
    target: Target,
    session: Session,
    choice: Choice,
    rules: PowerRules,
    fence: Fence,
    journal: Journal,
    say: Callable[[str], None],
) -> Restored:
    """Wait for tasks under way, put everything back, take the run's mark off the VM."""
    ref = find_own(session, vm)
    settle(session, ref, rules.task_s)
    facts = read.read_vm(session, ref)
    if facts.power is Power.OFF:
        late_log.collect(journal, session, ref)
    if vm.baseline is None or is_anothers(store, run, vm, facts):
        outcome = Restored(vm.name, 0, 0, facts.power)
    else:
        outcome = _put_back(store, run, vm, target, session, ref, facts, choice, rules, fence, journal, say)
    _unmark(session, ref, run, journal)
    off = any(edit == POWER_OFF[0] for edit in journal.made)
    return replace(outcome, changes=net(journal.made), powered_off=off)


def _unmark(session: Session, ref: VmRef, run: Run, journal: Journal) -> None:
    """Take the run's own mark off. If somebody writes to the VM meanwhile: again."""
    for tries_left in reversed(range(UNMARK_TRIES)):
        mark = lease_mark.read_mark(session, ref)
        if foreign_mark(mark.text, run):
            return
        lease_note.clear_note(session, ref)
        if mark.text is None:
            return
        try:
            with journal.change("mark", [unmarking(run)]):
                lease_mark.write_mark(session, ref, None, mark.change_version)
        except apply.ChangedMeanwhile:
            if not tries_left:
                raise


def _put_back(
    store: Store,
    run: Run,
    vm: Vm,
    target: Target,
    session: Session,
    ref: VmRef,
    facts: VmFacts,
    choice: Choice,
    rules: PowerRules,
    fence: Fence,
    journal: Journal,
    say: Callable[[str], None],
) -> Restored:
    baseline = settings_back(store, vm, facts, choice)
    server = partial(sql_server, target)
    is_ours = partial(Endpoint(store, run, vm, target).is_ours, session, ref)
    inside = GuestBack(session, ref, server, is_ours, parts_of(store, run, vm), rules, fence, journal, say)
    inside.before_shape(facts)
    change = change_back(facts.settings, baseline)
    if change:
        facts = _apply(session, ref, facts, change, rules, fence, journal, say)
    wrong = differences({k: v for k, v in baseline.items() if not is_evidence(k)}, facts.settings)
    checked = sum(not is_evidence(name) for name in baseline)
    if change_back(facts.settings, baseline):
        names = ", ".join(edit.setting for edit in wrong)
        raise NotAtBaseline(
            f"{vm.name} reads back different from its baseline: {names}.", fix=f"vnuma restore {vm.name}"
        )
    facts = inside.after_shape(facts)
    wanted = baseline_power(vm)
    if wanted is Power.ON and facts.power is not Power.ON:
        say(f"powering {vm.name} on")
        with journal.change("power", POWER_ON):
            power.power_on(session, ref, host_moid=facts.host_moid, fence=fence, timeout_s=rules.task_s)
    elif wanted is Power.OFF and facts.power is not Power.OFF:
        shut_down(session, ref, rules, fence, journal)
    state = read.read_vm(session, ref).power
    checked += inside.prove(state)
    return Restored(vm.name, checked, checked, state)


def _apply(
    session: Session,
    ref: VmRef,
    facts: VmFacts,
    change: Change,
    rules: PowerRules,
    fence: Fence,
    journal: Journal,
    say: Callable[[str], None],
) -> VmFacts:
    if change.needs_power_off and facts.power is not Power.OFF:
        say(f"shutting {facts.name} down")
        shut_down(session, ref, rules, fence, journal)
        facts = read.read_vm(session, ref)
    say(f"putting back {len(change.edits)} settings of {facts.name}")
    with journal.change("put back", change):
        return apply.reconfigure(session, ref, change, seen=facts, fence=fence)
