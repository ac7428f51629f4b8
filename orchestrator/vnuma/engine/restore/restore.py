"""Restore a target of a run, and record how that ended; and how it differs from its baseline now.

At the end of a run, in a play, in recovery or by hand, a restore first raises the lease's token, so that all
other processes of the run stop at their next write. Then the VM (`restore_vm.py`), and what the study left in
its guest through a shell (files and kernel settings) are restored, each under the VM's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Value
from vnuma.engine.access.context import VmContext, holder, refuse_unshaped, study_of
from vnuma.engine.access.guest_shell import PlayedShell, answering
from vnuma.engine.access.inventory import stored_target
from vnuma.engine.audit.log import Journal, journal_of
from vnuma.engine.cell.boot import proven_guest, proven_uuid
from vnuma.engine.instance import sql_identity
from vnuma.engine.instance.sql_identity import KERNEL, Endpoint, kernel_baseline
from vnuma.engine.instance.sql_settings import to_restore
from vnuma.engine.lease.baseline import baseline_power, baseline_settings, refuse_altered, written
from vnuma.engine.lease.vcenter_retry import RESTORING, VCenterRetry, report_retry, report_wait
from vnuma.engine.lease.whose_vm import foreign_mark
from vnuma.engine.restore.restore_vm import (
    Choice,
    Difference,
    Restored,
    RestorePlan,
    Source,
    VmRestoration,
    about_power,
    kept_settings,
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
from vnuma.store import attempts, audit, cells, leases, runs
from vnuma.store.audit import AuditLine
from vnuma.store.open import Store
from vnuma.store.rows import Lease, RestoreOutcome, Run, Vm
from vnuma.workloads.interface import workload_named

_TRIES = 3
"""How often a restore is started again after the store's server restarted."""


@dataclass(frozen=True)
class Restoration:
    """The restore of one target of a run. Raises InputError as `refuse_unshaped`."""

    context: VmContext
    choice: Choice = "refuse"
    say: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        refuse_unshaped(self.context.run, self.context.vm, self.context.target)

    @property
    def vm(self) -> VmRestoration | None:
        """That of its VM, as the store has its baseline now; None for a target that nothing shapes."""
        context = self.context
        if context.target.vcenter is None:
            return None
        say = report_wait(context.store, context.vm, RESTORING, self.say)
        return VmRestoration(lambda: source_in_store(context, self.choice), context.target, say)

    @property
    def guest(self) -> GuestRestoration | None:
        """That of its guest; None where the run never reached it by a shell."""
        context = self.context
        uuid = proven_uuid(context) if "shell" in context.study.workload.needs else None
        if uuid or context.target.vcenter is None:
            return GuestRestoration(context, self.choice, uuid, self.say)
        return None

    def plan(self) -> RestorePlan:
        """What `restore` would change now. Raises RestoreConflict where it would."""
        vm, guest = self.vm, self.guest
        plan = vm.plan() if vm else RestorePlan()
        return replace(plan, changes=(*plan.changes, *guest.edits().values())) if guest else plan

    def differences(self) -> list[Difference]:
        """How the target differs from its baseline now. Changes nothing."""
        return [one for part in (self.vm, self.guest) if part for one in part.differences()]

    def restore(self) -> Restored:
        """Restore the target and release its lease. Safe to repeat, and repeated if the store's server
        restarts.

        This is the one place that catches any exception: a bug with one target must not prevent the next
        restore.

        Raises RestoreConflict when somebody else changed it and `choice` is `refuse`, and NotAtBaseline when
        it could not be restored, also for an unreadable store and for bugs; the lease is kept in both.
        LeaseLost, VmHeld and InputError mean that the target is not this run's to restore. StoreError means
        that it was restored but the store could not be written.
        """
        for left in reversed(range(_TRIES)):
            try:
                return self._restored()
            except NotAtBaseline as error:
                if not (left and isinstance(error.__cause__, StoreAway)):
                    raise
            except VnumaError:
                raise
            except Exception as error:
                raise possibly_changed(self.context.vm.name, error) from error
        raise AssertionError("the last try returns or raises")

    def _restored(self) -> Restored:
        context, name = self.context, self.context.vm.name
        try:
            token, broken = self._advance_token()
        except StoreError as error:
            raise possibly_changed(name, error) from error
        try:
            refuse_altered(context.store, context.run, context.vm)
            done = self._both(replace(context, token=token, made=[]))
        except LeaseLost:
            raise  # another process restores it
        except NotAtBaseline as error:
            conflict = isinstance(error, RestoreConflict)
            self._record(token, RestoreOutcome.CONFLICT if conflict else RestoreOutcome.FAILED, error)
            raise
        except Exception as error:
            away, cut = possibly_changed(name, error), isinstance(error, VCenterUnreachable)
            self._record(token, RestoreOutcome.UNREACHABLE if cut else RestoreOutcome.FAILED, away)
            raise away from error
        self._give_up(token, done, broken)
        return done

    def _both(self, held: VmContext) -> Restored:
        """The VM first: a guest is reached best in the shape and power state that it had."""
        # A line that cannot be written must not prevent a restore; `_give_up` reports the store.
        journal = replace(journal_of(held), on_store_error=lambda _: None)
        patience = VCenterRetry(held.study.power.vcenter_retry_s)
        tell = report_retry(held.store, held.vm, RESTORING, patience, self.say)
        vm = self.vm
        done = vm.restore(held.home, held.fence, journal, tell) if vm else Restored(held.vm.name)
        guest = None if done.lab_ended else self.guest
        return guest.restore(done, held.fence, journal) if guest else done

    def _advance_token(self) -> tuple[int, StoreError | None]:
        """Raise the token, so that other processes working on the target stop at their next write.

        Keeps the present token if the store cannot be written (a full disk): then no other process can write
        either.
        """
        try:
            with self.context.store.write() as connection:
                token = leases.raise_token(connection, self.context.vm.vm_key, self.context.run.id, holder())
                cells.interrupt_attempts(connection, self.context.vm.id, token)
                return token, None
        except StoreError as error:
            with self.context.store.read() as connection:
                lease = leases.get_lease(connection, self.context.vm.vm_key)
            if lease is None or lease.run_id != self.context.run.id:
                raise
            return lease.token, error

    def _give_up(self, token: int, done: Restored, broken: StoreError | None) -> None:
        """Record the outcome and release the lease in one transaction.

        Raises StoreError saying that the target was restored; `broken` is an earlier failure to write.
        """
        theirs = RestoreOutcome.THEIRS if self.choice == "theirs" else RestoreOutcome.RESTORED
        settled = RestoreOutcome.UNCHANGED if done.lab_ended else theirs
        try:
            with self.context.store.write() as connection:
                cells.set_restored(connection, self.context.vm.id, token, settled, {"words": done.words})
                leases.release_lease(connection, self.context.vm.vm_key, token)
        except StoreError as error:
            raise StoreError(
                f"{(broken or error).what} {done.words}; only the store is not up to date.",
                fix=f"When the store can be written again: vnuma restore {self.context.vm.name}",
            ) from error

    def _record(self, token: int, outcome: RestoreOutcome, error: VnumaError) -> None:
        """Store the outcome; a failure to do so must not hide the error being raised."""
        detail = {"words": error.what, "token": token}
        with suppress(StoreError), self.context.store.write() as connection:
            cells.set_restored(connection, self.context.vm.id, token, outcome, detail)


def source_in_store(context: VmContext, choice: Choice) -> Source:
    """What the store knows of the VM and the run's changes to it."""
    store, run, vm = context.store, context.run, context.vm
    with store.read() as connection:
        ours = written(attempts.changes_of_vm(connection, vm.id))
    known = vm.baseline is not None
    before = baseline_settings(vm) if known else {}

    def power_lines() -> list[AuditLine]:
        with store.read() as connection:
            return about_power(audit.changes(audit.lines(connection, run.id, vm_key=vm.vm_key)))

    return Source(
        vm_key=vm.vm_key,
        name=vm.name,
        where=f"{vm.name} ({vm.path})",
        run=run.name,
        rules=context.study.power,
        choice=choice,
        choose=_choose(vm.name),
        power=baseline_power(vm) if known else None,
        before=lambda _now: before,
        written=ours,
        foreign_mark=lambda text: foreign_mark(text, run),
        power_lines=power_lines,
        is_known=known,
        untouched=vm.at_baseline or not ours,
        lab=run.simulated,
        inside=to_restore(store, run, vm) if known else (),
        proves=Endpoint(store, run, vm, context.target).is_ours,
    )


def _choose(name: str) -> str:
    return f"vnuma restore {name} --theirs | --baseline"


@dataclass(frozen=True)
class GuestRestoration:
    """The restore through a root shell. A boot resets kernel settings, so a shaped VM has none to restore."""

    context: VmContext
    choice: Choice
    bios_uuid: str | None
    """The UUID of the VM whose guest it must be, which is booting; None where nothing boots it."""
    say: Callable[[str], None] = lambda _: None

    def edits(self) -> dict[str, Edit]:
        """What `restore` would change besides removing files, by setting that the study holds.

        Raises RestoreConflict when somebody else changed one and `choice` is `refuse`; `theirs` keeps it.
        """
        vm, held = self.context.vm, self.context.study.workload.kernel_settings()
        before = self._before()
        now = self._now(before)
        foreign = sql_identity.foreign_changes(before, held, now)
        theirs = kept_settings(vm.name, foreign, self.choice, _choose(vm.name))
        return {
            name: Edit(sql_identity.key(name), now.get(name), value)
            for name, value in before.items()
            if now.get(name) != value and sql_identity.key(name) not in theirs
        }

    def differences(self) -> list[Difference]:
        """How the guest differs from its baseline now. Settings with the study's values count as ours."""
        before, held = kernel_baseline(self.context.vm), self.context.study.workload.kernel_settings()
        now = self._now(before)
        return [
            Difference(sql_identity.key(name), value, now.get(name), by)
            for name, value in before.items()
            for by in ["us" if name in held and now.get(name) == held[name] else "somebody else"]
            if now.get(name) != value
        ]

    def restore(self, done: Restored, fence: Callable[[], None], journal: Journal) -> Restored:
        """The result with the guest's part. Files first: they fill its memory, whatever its settings are.

        Raises RestoreConflict, WrongServer for another machine's shell, MeasurementFailed.
        """
        context, vm = self.context, self.context.vm
        with context.locked(self.say):
            fence()
            if vm.baseline is None:
                return replace(done, begun=False)
            shell = context.shell()
            if self.bios_uuid is not None:
                shell = answering(shell, context.study.power.sql_timeout_s)
            proven_guest(vm, shell, self.bios_uuid)
            workload_named(context.study.workload.name).remove(shell, context.study.workload)
            edits = self.edits()
            sql_identity.switch(
                context.shell(),
                {name: str(edit.after) for name, edit in edits.items()},
                {name: str(edit.before) for name, edit in edits.items()},
                journal,
            )
            before = self._before()
            now = self._now(before)
        equal = done.equal + sum(now.get(name) == value for name, value in before.items())
        changes = (*done.changes, *edits.values())
        return replace(done, settings=done.settings + len(before), equal=equal, changes=changes)

    def _now(self, names: dict[str, str]) -> dict[str, str]:
        return sql_identity.read_kernel(self.context.shell(), names) if names else {}

    def _before(self) -> dict[str, str]:
        """The values before the run of those settings that the study holds during a pass."""
        vm, held = self.context.vm, self.context.study.workload.kernel_settings()
        known = kernel_baseline(vm) if vm.baseline is not None else {}
        return {name: value for name, value in known.items() if name in held}


def restore_abandoned(vm: Vm, lease: Lease) -> bool:
    """Whether the process that took the VM over last failed to restore it and has stopped."""
    detail = vm.restore_detail
    return isinstance(detail, dict) and detail.get("token") == lease.token and not vm.at_baseline


def possibly_changed(name: str, error: Exception) -> NotAtBaseline:
    """The error for a target that was not restored, or not provably. It includes a bug's traceback."""
    known = from_os_error(error) if isinstance(error, OSError) else error
    why = known.what if isinstance(known, VnumaError) else f"{type(error).__name__}: {error}"
    away = NotAtBaseline(
        f"{name} may not be at its baseline: {why}", fix=f"Fix the cause, then: vnuma restore {name}"
    )
    away.bug = None if isinstance(known, VnumaError) else error
    return away


def restoration_from_store(
    store: Store,
    run: Run,
    vm: Vm,
    inventory: Path,
    *,
    choice: Choice = "refuse",
    say: Callable[[str], None] = lambda _: None,
) -> Restoration:
    """The restore of a target of a run as the store has it, reached by this inventory."""
    with store.read() as connection:
        study = study_of(connection, run)
    target, shell = stored_target(inventory, vm.vm_key, vm.name), PlayedShell(vm.name, inventory)
    return Restoration(VmContext(store, run, study, vm, target, task_shell=shell), choice, say)


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
        return None, {sql_identity.key(name): value for name, value in kernel_baseline(vm).items()}
    return str(baseline_power(vm)), baseline_settings(vm)


def differences_now(store: Store, run: Run, vm: Vm, inventory: Path | None) -> list[Difference]:
    """How the VM differs from its baseline now. Changes nothing. Raises InputError for an imported run."""
    with store.read() as connection:
        runs.refuse_imported(connection, run.id)
    where = inventory or Path(run.inventory or "inventory")
    return restoration_from_store(store, run, vm, where).differences()
