"""Restore a target after a run, and record how that ended; and how it differs from its baseline now.

At the end of a run, in a play, in recovery or by hand, a restore first raises the lease's token, so that all
other processes of the run stop at their next write. Then each part of the target is restored under its lock:
the VM (`restore_vm.py`), and what the study left in its guest (`restore_guest.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from vnuma.domain.vm.setting import Value
from vnuma.engine.access.context import VmContext, holder, refuse_unshaped, study_of
from vnuma.engine.access.guest_shell import PlayedShell
from vnuma.engine.access.inventory import stored_target
from vnuma.engine.audit.journal import journal_of
from vnuma.engine.cell.shell_guest import proven_uuid
from vnuma.engine.instance import kernel
from vnuma.engine.instance.kernel import KERNEL, kernel_baseline
from vnuma.engine.lease.baseline_document import baseline_power, baseline_settings, refuse_altered
from vnuma.engine.restore.part import (
    Choice,
    Difference,
    HeldLease,
    PartRestore,
    Restored,
    RestorePlan,
    together,
)
from vnuma.engine.restore.restore_guest import GuestRestoration
from vnuma.engine.restore.restore_vm import VmRestoration
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
from vnuma.store import baselines, cells, leases, runs, vms
from vnuma.store.open import Store
from vnuma.store.rows import Lease, RestoreOutcome, Run, Vm

_TRIES = 3
"""How often a restore is started again after the store's server restarted."""


@dataclass(frozen=True)
class Restoration:
    """The restore of one target of a run, part by part."""

    context: VmContext
    choice: Choice
    parts: Sequence[PartRestore]

    def plan(self) -> RestorePlan:
        """What `restore` would change now. Raises RestoreConflict where it would."""
        plans = [part.plan() for part in self.parts]
        return RestorePlan(
            tuple(edit for plan in plans for edit in plan.changes),
            any(plan.powered_off for plan in plans),
            any(plan.removes_files for plan in plans),
        )

    def differences(self) -> list[Difference]:
        """How the target differs from its baseline now. Changes nothing."""
        return [difference for part in self.parts for difference in part.differences()]

    def _settled(self, done: Restored) -> RestoreOutcome:
        if done.lab_ended:
            return RestoreOutcome.UNCHANGED
        return RestoreOutcome.THEIRS if self.choice == "theirs" else RestoreOutcome.RESTORED

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
        try:
            token, broken = self._advance_token()
        except StoreError as error:
            raise possibly_changed(self.context.vm.name, error) from error
        try:
            refuse_altered(self.context.store, self.context.run, self.context.vm)
            held = self._held(token)
            done = together(list(self._each_restored(held)))
        except RestoreConflict as error:
            self._record(token, RestoreOutcome.CONFLICT, error.what)
            raise
        except NotAtBaseline as error:
            self._record(token, RestoreOutcome.FAILED, error.what)
            raise
        except LeaseLost:
            raise  # another process restores it
        except Exception as error:
            away = possibly_changed(self.context.vm.name, error)
            cut = isinstance(error, VCenterUnreachable)
            self._record(token, RestoreOutcome.UNREACHABLE if cut else RestoreOutcome.FAILED, away.what)
            raise away from error
        self._give_up(token, self._settled(done), done.words, broken)
        return done

    def _each_restored(self, held: HeldLease) -> Iterator[Restored]:
        """The result of each part; a VM that ended with its lab has no guest any more."""
        for part in self.parts:
            done = part.restore(held)
            yield done
            if done.lab_ended:
                return

    def _held(self, token: int) -> HeldLease:
        held = replace(self.context, token=token, made=[])
        # A line that cannot be written must not prevent a restore; `_give_up` reports the store.
        return HeldLease(held.fence, replace(journal_of(held), on_store_error=lambda _: None))

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

    def _give_up(self, token: int, settled: RestoreOutcome, words: str, broken: StoreError | None) -> None:
        """Record the outcome and release the lease in one transaction.

        Raises StoreError saying that the target was restored; `broken` is an earlier failure to write.
        """
        try:
            with self.context.store.write() as connection:
                baselines.set_restored(connection, self.context.vm.id, token, settled, {"words": words})
                leases.release_lease(connection, self.context.vm.vm_key, token)
        except StoreError as error:
            raise StoreError(
                f"{(broken or error).what} {words}; only the store is not up to date.",
                fix=f"When the store can be written again: vnuma restore {self.context.vm.name}",
            ) from error

    def _record(self, token: int, outcome: RestoreOutcome, words: str) -> None:
        """Store the outcome; a failure to do so must not hide the error being raised."""
        detail = {"words": words, "token": token}
        with suppress(StoreError), self.context.store.write() as connection:
            baselines.set_restored(connection, self.context.vm.id, token, outcome, detail)


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


def restoration_of(
    context: VmContext,
    *,
    choice: Choice = "refuse",
    say: Callable[[str], None] = lambda _: None,
) -> Restoration:
    """The restore of the context's target. Raises InputError as `refuse_unshaped`."""
    refuse_unshaped(context.run, context.vm, context.target)
    parts = tuple(_parts(context, choice, say))
    return Restoration(context, choice, parts)


def _parts(context: VmContext, choice: Choice, say: Callable[[str], None]) -> Iterator[PartRestore]:
    """The VM first: a guest is reached best in the shape and power state that it had."""
    if context.target.vcenter:
        yield VmRestoration(context, choice, say)
    if "shell" in context.study.workload.needs:
        uuid = proven_uuid(context)
        if uuid or context.target.vcenter is None:
            yield GuestRestoration(context, choice, say, uuid)


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
    context = VmContext(store, run, study, vm, target, task_shell=shell)
    return restoration_of(context, choice=choice, say=say)


@dataclass(frozen=True)
class Baseline:
    """A VM's configuration before a run: settings by name, its power state, when it was taken."""

    vm: str
    path: str
    run: str
    taken_at: datetime
    at_baseline: bool
    """Whether it was restored since, or never changed."""
    power: str | None
    """None for a machine, which stays on."""
    settings: dict[str, Value]


def stored_baseline(store: Store, name: str, run: str | None) -> Baseline:
    """The baseline of that VM in `run`, or else in its newest run that has one.

    An imported run counts only if named. Raises InputError when there is no baseline.
    """
    owner, vm = _find(store, name, run)
    taken = vm.baseline_at
    if taken is None:
        raise InputError(f"{name} has no baseline in {owner.name}.", fix="vnuma status lists runs and VMs.")
    return Baseline(name, vm.path, owner.name, taken, vm.at_baseline, *_stored(vm))


def differences_now(
    store: Store, name: str, run: str | None, inventory: Path | None
) -> tuple[Baseline, list[Difference]]:
    """How the VM differs from its baseline now. Changes nothing. Raises as `stored_baseline` does."""
    baseline = stored_baseline(store, name, run)
    owner, vm = _find(store, name, baseline.run)
    with store.read() as connection:
        runs.refuse_imported(connection, owner.id)
    where = inventory or Path(owner.inventory or "inventory")
    return baseline, restoration_from_store(store, owner, vm, where).differences()


def _stored(vm: Vm) -> tuple[str | None, dict[str, Value]]:
    """Power state and settings; a machine has only kernel settings."""
    if isinstance(vm.baseline, dict) and KERNEL in vm.baseline:
        return None, {kernel.key(name): value for name, value in kernel_baseline(vm).items()}
    return str(baseline_power(vm)), baseline_settings(vm)


def _find(store: Store, name: str, run: str | None) -> tuple[Run, Vm]:
    with store.read() as connection:
        imported = set(connection.scalars(runs.imported_ids()))
        ours = [one for one in reversed(runs.list_runs(connection)) if one.id not in imported]
        for owner in [runs.get_run(connection, run)] if run else ours:
            for vm in vms.vms_of_run(connection, owner.id):
                if vm.name == name and vm.baseline is not None:
                    return owner, vm
    raise InputError(
        f"The store has no baseline of {name}" + (f" in {run}." if run else "."),
        fix="A run takes it before its first change; vnuma status lists runs and VMs.",
    )
