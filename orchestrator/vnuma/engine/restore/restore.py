"""Restore a target after a run, and record how that ended.

At the end of a run, in a play, in recovery or by hand, a restore first raises the lease's token, so that all
other processes of the run stop at their next write. Then each part of the target is restored under its lock:
the VM (`restore_vm.py`), and what the study left in its guest (`restore_guest.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from vnuma.domain.study.study import Study
from vnuma.domain.vm.change import Edit
from vnuma.domain.vm.setting import Power, Value
from vnuma.engine.access.context import VmContext, holder
from vnuma.engine.audit.journal import Journal
from vnuma.engine.lease.baseline_document import refuse_altered
from vnuma.engine.lease.foreign_changes import ForeignChange, conflict_words
from vnuma.errors import (
    LeaseLost,
    NotAtBaseline,
    RestoreConflict,
    StoreAway,
    StoreError,
    VCenterUnreachable,
    VnumaError,
    from_os_error,
)
from vnuma.store import baselines, cells, leases
from vnuma.store.open import Store
from vnuma.store.rows import Lease, RestoreOutcome, Run, Vm

Choice = Literal["refuse", "theirs", "baseline"]
"""For settings that somebody else changed: refuse and touch nothing, keep theirs, or restore them too."""

_TRIES = 3
"""How often a restore is started again after the store's server restarted."""


@dataclass(frozen=True)
class Restored:
    """The result of a restore: `equal` of `settings` read back equal, and what was changed.

    `power` is the power state, None where nothing powers it. `begun`: whether the run had started on it.
    `lab_ended`: it was a VM of a lab that exists no more.
    """

    vm: str
    settings: int
    equal: int
    power: Power | None
    changes: tuple[Edit, ...] = ()
    powered_off: bool = False
    begun: bool = True
    lab_ended: bool = False

    @property
    def changed(self) -> bool:
        return bool(self.changes)

    @property
    def words(self) -> str:
        """For people: only what was proven."""
        if not self.begun:
            return f"{self.vm}: no change was started there"
        if self.lab_ended:
            return f"{self.vm}: it ended with its lab; nothing is left to restore"
        state = {Power.ON: "powered on", None: "files removed"}.get(self.power, "powered off")
        if not self.settings:
            return f"{self.vm}: the study changes no setting here, {state}"
        return f"{self.vm}: {self.equal} of {self.settings} settings read back equal, {state}"


@dataclass(frozen=True)
class RestorePlan:
    """What a restore would change now, in the same form as the changes it reports."""

    changes: tuple[Edit, ...] = ()
    powered_off: bool = False
    removes_files: bool = False


@dataclass(frozen=True)
class Difference:
    """A setting that differs from the baseline, and who changed it: "us" or "somebody else"."""

    setting: str
    baseline: Value
    now: Value
    by: str


@dataclass(frozen=True)
class HeldLease:
    """The lease of a restore. Its fence refuses work after the token has moved on."""

    fence: Callable[[], None]
    journal: Journal


@dataclass(frozen=True)
class PartRestore(ABC):
    """The restore of one part of a target: its VM, or its guest. `context.vm` is its row in the store."""

    context: VmContext
    choice: Choice
    say: Callable[[str], None]

    @abstractmethod
    def plan(self) -> RestorePlan:
        """What `restore` would change now. Raises RestoreConflict where it would."""

    @abstractmethod
    def differences(self) -> list[Difference]:
        """How the part differs from its baseline now. Changes nothing."""

    @abstractmethod
    def restore(self, held: HeldLease) -> Restored:
        """Lock the target, compare the part with the baseline, write the differences, read them back.

        Raises RestoreConflict before the first change when somebody else changed something and `choice` is
        `refuse`; any VnumaError or OSError when it fails.
        """


@dataclass(frozen=True)
class Restoration:
    """The restore of one target of a run, part by part."""

    store: Store
    run: Run
    study: Study
    vm: Vm
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
                raise possibly_changed(self.vm.name, error) from error
        raise AssertionError("the last try returns or raises")

    def _restored(self) -> Restored:
        try:
            token, broken = self._advance_token()
        except StoreError as error:
            raise possibly_changed(self.vm.name, error) from error
        try:
            refuse_altered(self.store, self.run, self.vm)
            held = self._held(token)
            done = together([part.restore(held) for part in self.parts])
        except RestoreConflict as error:
            self._record(token, RestoreOutcome.CONFLICT, error.what)
            raise
        except NotAtBaseline as error:
            self._record(token, RestoreOutcome.FAILED, error.what)
            raise
        except LeaseLost:
            raise  # another process restores it
        except Exception as error:
            away = possibly_changed(self.vm.name, error)
            cut = isinstance(error, VCenterUnreachable)
            self._record(token, RestoreOutcome.UNREACHABLE if cut else RestoreOutcome.FAILED, away.what)
            raise away from error
        self._give_up(token, self._settled(done), done.words, broken)
        return done

    def _held(self, token: int) -> HeldLease:
        def fence() -> None:
            self.store.ask(lambda connection: leases.require_current(connection, self.vm.vm_key, token))

        # A line that cannot be written must not prevent a restore; `_give_up` reports the store.
        return HeldLease(
            fence,
            Journal(
                self.store,
                self.vm.vm_key,
                self.vm.name,
                self.run,
                on_store_error=lambda _: None,
            ),
        )

    def _advance_token(self) -> tuple[int, StoreError | None]:
        """Raise the token, so that other processes working on the target stop at their next write.

        Keeps the present token if the store cannot be written (a full disk): then no other process can write
        either.
        """
        try:
            with self.store.write() as connection:
                token = leases.raise_token(connection, self.vm.vm_key, self.run.id, holder())
                cells.interrupt_attempts(connection, self.vm.id, token)
                return token, None
        except StoreError as error:
            with self.store.read() as connection:
                lease = leases.get_lease(connection, self.vm.vm_key)
            if lease is None or lease.run_id != self.run.id:
                raise
            return lease.token, error

    def _give_up(self, token: int, settled: RestoreOutcome, words: str, broken: StoreError | None) -> None:
        """Record the outcome and release the lease in one transaction.

        Raises StoreError saying that the target was restored; `broken` is an earlier failure to write.
        """
        try:
            with self.store.write() as connection:
                baselines.set_restored(connection, self.vm.id, token, settled, {"words": words})
                leases.release_lease(connection, self.vm.vm_key, token)
        except StoreError as error:
            raise StoreError(
                f"{(broken or error).what} {words}; only the store is not up to date.",
                fix=f"When the store can be written again: vnuma restore {self.vm.name}",
            ) from error

    def _record(self, token: int, outcome: RestoreOutcome, words: str) -> None:
        """Store the outcome; a failure to do so must not hide the error being raised."""
        with suppress(StoreError), self.store.write() as connection:
            baselines.set_restored(connection, self.vm.id, token, outcome, {"words": words, "token": token})


def together(parts: Sequence[Restored]) -> Restored:
    """The result of a target, from those of its parts."""
    powers = [part.power for part in parts if part.power is not None]
    return Restored(
        parts[0].vm,
        sum(part.settings for part in parts),
        sum(part.equal for part in parts),
        powers[0] if powers else None,
        tuple(edit for part in parts for edit in part.changes),
        any(part.powered_off for part in parts),
        all(part.begun for part in parts),
        any(part.lab_ended for part in parts),
    )


def kept_settings(
    name: str, foreign: list[ForeignChange], choice: Choice, fix: str | None = None
) -> set[str]:
    """Which settings stay as somebody else changed them: with `theirs` all of them, else none.

    Raises RestoreConflict when there are any and `choice` is `refuse`.
    """
    if foreign and choice == "refuse":
        fix = fix or f"vnuma restore {name} --theirs | --baseline"
        raise RestoreConflict(conflict_words(name, foreign), fix=fix)
    return {item.setting for item in foreign} if choice == "theirs" else set()


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
