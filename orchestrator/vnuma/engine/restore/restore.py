"""Restore a target of a run, and record how that ended; and how it differs from its baseline now.

At the end of a run, in a play, in recovery or by hand, a restore first raises the lease's token, so that all
other processes of the run stop at their next write. Then the VM (`restore_vm.py`), and what the study left in
its guest through a shell (files and kernel settings) are restored, each under the VM's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Power, Value
from vnuma.engine.access.context import VmContext, holder, refuse_unshaped, study_of
from vnuma.engine.access.guest_shell import answering
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.secrets import masked
from vnuma.engine.access.target import Target
from vnuma.engine.audit.log import PROGRAM, Journal, journal_of
from vnuma.engine.cell.boot import proven_guest, proven_uuid
from vnuma.engine.instance import sql_identity
from vnuma.engine.instance.sql_identity import (
    KERNEL,
    ask_client,
    kernel_baseline,
    known_client,
    latest,
)
from vnuma.engine.instance.sql_settings import to_restore, wait_for_server
from vnuma.engine.lease.baseline import baseline_power, baseline_settings, refuse_altered, written
from vnuma.engine.lease.supervision import release_dead_supervisor
from vnuma.engine.lease.vcenter_retry import RESTORING, VCenterRetry, report_retry, report_wait
from vnuma.engine.restore.restore_vm import (
    Choice,
    Difference,
    Restored,
    Source,
    about_power,
    facts_now,
    kept_settings,
    restore_vm,
)
from vnuma.errors import (
    InputError,
    LeaseLost,
    NotAtBaseline,
    RestoreConflict,
    StoreAway,
    StoreError,
    VCenterUnreachable,
    VnumaError,
    from_os_error,
)
from vnuma.store import attempts, audit, cells, facts, leases, runs
from vnuma.store.audit import AuditLine
from vnuma.store.open import Store
from vnuma.store.rows import Lease, RestoreOutcome, Run, Vm
from vnuma.store.tables import iso
from vnuma.workloads.interface import workload_named
from vnuma.workloads.shell import LONGEST_S, Output, Shell

T = TypeVar("T")
E = TypeVar("E", bound=Exception)
Say = Callable[[str], None]

_TRIES = 3
"""How often a restore is started again after the store's server restarted."""


def restore_each(restores: Iterable[Callable[[], T]]) -> tuple[list[T], list[VnumaError]]:
    """Do each restore, and return their results and errors: a failure with one does not stop the others."""
    done: list[T] = []
    problems: list[VnumaError] = []
    for restore in restores:
        try:
            done.append(restore())
        except VnumaError as error:
            problems.append(error)
    return done, problems


def worst_first(problems: Iterable[E]) -> list[E]:
    """The problems; the first decides the exit code: a VM not at its baseline, if there is one."""
    return sorted(problems, key=lambda problem: not isinstance(problem, NotAtBaseline))


def naming_all(problems: Sequence[Exception]) -> Exception:
    """The error that decides the exit code: for all VMs not at their baseline one error, else the first."""
    away = [problem for problem in problems if isinstance(problem, NotAtBaseline)]
    if len(away) < 2:
        return worst_first(problems)[0]
    told = type(away[0])("\n".join(error.what for error in away), fix=away[0].fix)
    told.bug = next((error.bug for error in away if error.bug), None)
    return told


def restore_dead(context: VmContext, choice: Choice = "refuse", say: Say = lambda _: None) -> Restored:
    """Restore a target of a run whose process died. Raises as `restore_target`, VmHeld if it lives."""
    release_dead_supervisor(context.store, context.run)
    return restore_target(context, choice, say)


def restore_target(context: VmContext, choice: Choice = "refuse", say: Say = lambda _: None) -> Restored:
    """Restore a target of a run and release its lease. Safe to repeat, and repeated if the store's server
    restarts.

    Catches any exception: a bug with one target must not prevent the next restore.

    Raises RestoreConflict when somebody else changed it and `choice` is `refuse`, and NotAtBaseline when
    it could not be restored, also for an unreadable store and for bugs; the lease is kept in both.
    LeaseLost, VmHeld and InputError mean that the target is not this run's to restore. StoreError means
    that it was restored but the store could not be written.
    """
    refuse_unshaped(context.run, context.vm, context.target)
    for left in reversed(range(_TRIES)):
        try:
            return _restored(context, choice, say)
        except NotAtBaseline as error:
            if not (left and isinstance(error.__cause__, StoreAway)):
                raise
        except VnumaError:
            raise
        except Exception as error:
            raise possibly_changed(context.vm.name, error) from error
    raise AssertionError("the last try returns or raises")


def plan_target(context: VmContext, choice: Choice = "refuse") -> Restored:
    """What `restore_target` would change now. Raises RestoreConflict and InputError where it would."""
    refuse_unshaped(context.run, context.vm, context.target)
    plan = Restored(context.vm.name)
    if context.target.vcenter:
        source = source_in_store(context, choice)
        now = None if _restored_before(context, choice) else facts_now(source, context.target)
        plan = source.plan(now, context.target) if now else plan
    edits = guest_edits(context, choice).values() if has_guest(context) else ()
    return replace(plan, changes=(*plan.changes, *edits))


def differences(context: VmContext) -> list[Difference]:
    """How the target differs from its baseline now. Changes nothing."""
    refuse_unshaped(context.run, context.vm, context.target)
    found: list[Difference] = []
    if context.target.vcenter:
        source = source_in_store(context, "refuse")
        now = facts_now(source, context.target)
        found = source.differences(now) if now else []
    return [*found, *_guest_differences(context)] if has_guest(context) else found


def _restored(context: VmContext, choice: Choice, say: Say) -> Restored:
    """With the store kept open: a process that may open no more files could check no lease before a write."""
    with ExitStack() as kept:
        try:
            kept.enter_context(context.store.one_connection())
            token, broken = _advance_token(context)
        except StoreError as error:
            raise possibly_changed(context.vm.name, error) from error
        held = replace(context, token=token, made=[])
        try:
            refuse_altered(held.store, held.run, held.vm)
            done = _restore_both(held, choice, say)
        except LeaseLost:
            raise  # another process restores it
        except NotAtBaseline as error:
            conflict = isinstance(error, RestoreConflict)
            _record(held, RestoreOutcome.CONFLICT if conflict else RestoreOutcome.FAILED, error)
            raise
        except Exception as error:
            away, cut = possibly_changed(held.vm.name, error), isinstance(error, VCenterUnreachable)
            _record(held, RestoreOutcome.UNREACHABLE if cut else RestoreOutcome.FAILED, away)
            raise away from error
        theirs = RestoreOutcome.THEIRS if choice == "theirs" else RestoreOutcome.RESTORED
        _give_up(held, RestoreOutcome.UNCHANGED if done.lab_ended else theirs, done, broken)
        return done


def _restore_both(held: VmContext, choice: Choice, say: Say) -> Restored:
    """The VM first: a guest is reached best in the shape and power state that it had.

    A VM that was restored while its programs' part failed is not touched again: it may be in use.
    """
    done = Restored(held.vm.name)
    if held.target.vcenter:
        patience = VCenterRetry(held.study.power.vcenter_retry_s)
        done = _restored_before(held, choice) or restore_vm(
            partial(source_in_store, held, choice),
            held.target,
            _journal(held),
            home=held.home,
            fence=held.fence,
            tell=report_retry(held.store, held.vm, RESTORING, patience, say),
            say=report_wait(held.store, held.vm, RESTORING, say),
        )
    if done.lab_ended or not has_guest(held):
        return done
    if held.target.vcenter is None:
        return restore_guest(held, choice, say, done)
    noted = {"settings": done.settings, "after": _last_attempt(held)}
    with suppress(StoreError), held.store.write() as connection:
        facts.add_vm_facts(connection, held.vm.id, _VM_RESTORED, {"vm": noted})
    try:
        return restore_guest(held, choice, say, done)
    except (LeaseLost, NotAtBaseline):
        raise
    except VnumaError as error:
        name, where = held.vm.name, held.study.workload.client_host or "its guest"
        raise NotAtBaseline(
            f"{done.words}. What the study's programs left on {where} is not undone: {error.what}",
            fix=f"Fix the cause, then: vnuma restore {name}. If {where} is gone for good: "
            f"vnuma restore {name} --vm-only",
        ) from error


_VM_RESTORED = "vm_restored"
"""Fact of a VM that was restored before its programs' part: how many settings, and its last attempt then."""


def _journal(held: VmContext) -> Journal:
    """A line that cannot be written must not prevent a restore; `_give_up` reports the store."""
    return replace(journal_of(held), on_store_error=lambda _: None)


def _restored_before(held: VmContext, choice: Choice) -> Restored | None:
    """The VM as an earlier restore left it; None if a run has marked or changed it since, or if a person has
    chosen what becomes of it.
    """
    noted = latest(held, _VM_RESTORED)
    if noted is None or noted["after"] != _last_attempt(held) or choice != "refuse":
        return None
    now = facts_now(source_in_store(held, choice), held.target)
    settings = int(str(noted["settings"]))
    return Restored(held.vm.name, settings, settings, now.power) if now and now.lease is None else None


def _last_attempt(held: VmContext) -> int:
    lines = held.store.ask(attempts.lines_of_run, held.run.id, held.vm.id)
    return max((line.id for line in lines), default=0)


def _advance_token(context: VmContext) -> tuple[int, StoreError | None]:
    """Raise the token, so that other processes working on the target stop at their next write.

    Keeps the present token if the store cannot be written (a full disk): then no other process can write
    either.
    """
    vm, run = context.vm, context.run
    try:
        with context.store.write() as connection:
            token = leases.raise_token(connection, vm.vm_key, run.id, holder())
            cells.interrupt_attempts(connection, vm.id, token)
            return token, None
    except StoreError as error:
        with context.store.read() as connection:
            lease = leases.get_lease(connection, vm.vm_key)
        if lease is None or lease.run_id != run.id:
            raise
        return lease.token, error


def _give_up(held: VmContext, outcome: RestoreOutcome, done: Restored, broken: StoreError | None) -> None:
    """Record the outcome and release the lease in one transaction.

    Raises StoreError saying that the target was restored; `broken` is an earlier failure to write.
    """
    vm = held.vm
    try:
        with held.store.write() as connection:
            cells.set_restored(connection, vm.id, held.token, outcome, {"words": done.words})
            leases.release_lease(connection, vm.vm_key, held.token)
    except StoreError as error:
        raise StoreError(
            f"{(broken or error).what} {done.words}; only the store is not up to date.",
            fix=f"When the store can be written again: vnuma restore {vm.name}",
        ) from error


def _record(held: VmContext, outcome: RestoreOutcome, error: VnumaError) -> None:
    """Store the outcome; a failure to do so must not hide the error being raised."""
    detail = {"words": error.what, "token": held.token}
    with suppress(StoreError), held.store.write() as connection:
        cells.set_restored(connection, held.vm.id, held.token, outcome, detail)


def source_in_store(context: VmContext, choice: Choice) -> Source:
    """What the store knows of the VM and the run's changes to it."""
    store, run, vm = context.store, context.run, context.vm
    with store.read() as connection:
        ours = written(attempts.changes_of_vm(connection, vm.id))
    known = vm.baseline is not None

    def power_lines() -> list[AuditLine]:
        with store.read() as connection:
            return about_power(audit.changes(audit.lines(connection, run.id, vm_key=vm.vm_key)))

    return Source(
        vm_key=vm.vm_key,
        name=vm.name,
        run=run.name,
        created=iso(run.created_at),
        rules=context.study.power,
        choice=choice,
        choose=_choose(vm.name),
        power=baseline_power(vm) if known else None,
        known=baseline_settings(vm) if known else {},
        written=ours,
        power_lines=power_lines,
        is_known=known,
        untouched=vm.at_baseline or not ours,
        execution_s=context.study.workload.timeout_s,
        lab=run.simulated,
        inside=to_restore(store, run, vm) if known else {},
        proves=partial(sql_identity.is_ours, context),
    )


def _choose(name: str) -> str:
    return f"vnuma restore {name} --theirs | --baseline"


def has_guest(context: VmContext) -> bool:
    """Whether the run may have left something by a root shell, in the guest or on the workload's client.

    It never reached a guest that it has not proven.
    """
    work = context.study.workload
    if context.target.vcenter is None:
        return True
    if context.vm_only or not work.runs_programs:
        return False
    return (known_client(context) if work.client_host else proven_uuid(context)) is not None


def guest_edits(context: VmContext, choice: Choice) -> dict[str, Edit]:
    """What a restore would change in the guest besides removing files, by setting that the study holds.

    A boot resets kernel settings, so a shaped VM has none to restore. Raises RestoreConflict when somebody
    else changed one and `choice` is `refuse`; `theirs` keeps it.
    """
    name, before = context.vm.name, _held_before(context)
    now = _kernel_now(context, before)
    foreign = sql_identity.foreign_kernel_changes(before, context.study.workload.kernel_settings(), now)
    theirs = kept_settings(name, foreign, choice, _choose(name))
    return {
        name: Edit(sql_identity.kernel_key(name), now.get(name), value)
        for name, value in before.items()
        if now.get(name) != value and sql_identity.kernel_key(name) not in theirs
    }


def _guest_differences(context: VmContext) -> list[Difference]:
    """How the guest differs from its baseline now. Settings with the study's values count as ours."""
    before, held = kernel_baseline(context.vm), context.study.workload.kernel_settings()
    now = _kernel_now(context, before)
    return [
        Difference(sql_identity.kernel_key(name), value, now.get(name), by)
        for name, value in before.items()
        for by in ["us" if name in held and now.get(name) == held[name] else "somebody else"]
        if now.get(name) != value
    ]


def _fenced(context: VmContext, shell: Shell, script: str, within_s: float = LONGEST_S) -> Output:
    """Run a script after checking the lease. Raises LeaseLost."""
    context.fence()
    return shell(script, within_s)


@dataclass(frozen=True)
class Leftover:
    """`workloads.interface.Reached` for what a run has left."""

    context: VmContext
    boot: str

    @property
    def vm_key(self) -> str:
        return self.context.vm.vm_key

    @property
    def shell(self) -> Shell:
        return partial(_fenced, self.context, self.context.workload_shell())

    def masked(self, text: str) -> str:
        """The text without secrets."""
        return masked(text)

    def note(self, words: str) -> None:
        """Write a line of the audit log, if that is possible."""
        _journal(self.context).note(PROGRAM, words)


def restore_guest(context: VmContext, choice: Choice, say: Say, done: Restored) -> Restored:
    """The result with the guest's part. Files first: they fill its memory, whatever its settings are.

    Raises RestoreConflict, WrongServer for another machine's shell, MeasurementFailed.
    """
    vm, workload = context.vm, context.study.workload
    with context.locked(say):
        context.fence()
        if vm.baseline is None:
            return replace(done, begun=False)
        boot = _reached_boot(context, done)
        workload_named(workload.name).remove(Leftover(context, boot), workload)
        edits, before = guest_edits(context, choice), _held_before(context)
        shell, wanted = partial(_fenced, context, context.shell()), {name: before[name] for name in edits}
        found = {name: str(edit.before) for name, edit in edits.items()}
        sql_identity.set_kernel(shell, wanted, found, _journal(context))
        now = _kernel_now(context, before)
    equal = done.equal + sum(now.get(name) == value for name, value in before.items())
    changes = (*done.changes, *edits.values())
    return replace(done, settings=done.settings + len(before), equal=equal, changes=changes)


def _reached_boot(context: VmContext, done: Restored) -> str:
    """The boot's number of the machine where programs run, proven to be the run's, once the guest is ready:
    they may ask it. Raises WrongServer, SqlTimeout.
    """
    work, boot, within_s = context.study.workload, "", context.study.power.sql_timeout_s
    if "shell" in work.needs:
        shell, uuid = context.shell(), proven_uuid(context) if context.target.vcenter else None
        if uuid is not None:  # its VM is booting
            shell = answering(shell, within_s)
        boot = proven_guest(context.vm, shell, uuid).boot
    elif done.power is Power.ON:
        wait_for_server(context.sql(), within_s)
    return str(ask_client(context)["boot"]) if work.client_host else boot


def _kernel_now(context: VmContext, names: dict[str, str]) -> dict[str, str]:
    return sql_identity.read_kernel(context.shell(), names) if names else {}


def _held_before(context: VmContext) -> dict[str, str]:
    """The values before the run of those settings that the study holds during a pass."""
    known = kernel_baseline(context.vm) if context.vm.baseline is not None else {}
    held = context.study.workload.kernel_settings()
    return {name: value for name, value in known.items() if name in held}


def restore_abandoned(vm: Vm, lease: Lease) -> bool:
    """Whether the process that took the VM over last failed to restore it and has stopped."""
    detail = vm.restore_detail
    return isinstance(detail, dict) and detail.get("token") == lease.token and not vm.at_baseline


def possibly_changed(name: str, error: Exception, again: str | None = None) -> NotAtBaseline:
    """The error for a target that was not restored, or not provably. It includes a bug's traceback."""
    known = from_os_error(error) if isinstance(error, OSError) else error
    why = known.what if isinstance(known, VnumaError) else f"{type(error).__name__}: {error}"
    fix = f"Fix the cause, then: {again or f'vnuma restore {name}'}"
    away = NotAtBaseline(f"{name} may not be at its baseline: {why}", fix=fix)
    away.bug = None if isinstance(known, VnumaError) else error
    return away


def context_in_store(
    store: Store,
    run: Run,
    vm: Vm,
    inventory: Inventory,
    target: Target | None = None,
    *,
    vm_only: bool = False,
) -> VmContext:
    """A target of a run as the store has it, reached by this inventory; `target` if it was read there."""
    with store.read() as connection:
        study = study_of(connection, run)
    there = target or inventory.stored_target(vm.vm_key, vm.name)
    return VmContext(store, run, study, vm, there, reached_by=inventory, vm_only=vm_only)


def find_baseline(store: Store, name: str, run: str | None) -> tuple[Run, Vm]:
    """The VM in `run`, or else in its newest run that has a baseline of it.

    An imported run counts only if named. Raises InputError when there is no baseline.
    """
    with store.read() as connection:
        imported = set(connection.scalars(runs.imported_ids()))
        ours = [one for one in reversed(runs.list_runs(connection)) if one.id not in imported]
        for owner in [runs.get_run(connection, run)] if run else ours:
            for vm in leases.vms_of_run(connection, owner.id):
                if vm.name == name and vm.baseline is not None:
                    return owner, vm
    raise InputError(
        f"The store has no baseline of {name}" + (f" in {run}." if run else "."),
        fix="A run takes it before its first change; vnuma status lists runs and VMs.",
    )


def baseline_values(vm: Vm) -> tuple[str | None, dict[str, Value]]:
    """Its power state and settings before the run; a target that nothing shapes has only kernel settings."""
    if isinstance(vm.baseline, dict) and KERNEL in vm.baseline:
        return None, {sql_identity.kernel_key(name): value for name, value in kernel_baseline(vm).items()}
    return str(baseline_power(vm)), baseline_settings(vm)


def differences_now(store: Store, run: Run, vm: Vm, inventory: Path | None) -> list[Difference]:
    """How the VM differs from its baseline now. Changes nothing. Raises InputError for an imported run."""
    with store.read() as connection:
        runs.refuse_imported(connection, run.id)
    where = Inventory(inventory or Path(run.inventory or "inventory"))
    return differences(context_in_store(store, run, vm, where))
