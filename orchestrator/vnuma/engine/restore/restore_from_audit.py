"""Restore without the store, from the changes that the audit log's file also records.

A store that was deleted during a run no longer knows the run, and the next one would take the changed VM as
its baseline. So `vnuma restore` reads the file next to the store, and undoes changes of runs that the store
lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from vnuma.domain.study.study import Power as PowerRules
from vnuma.domain.vm.change import Edit, net, settings_after, value_words
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import TYPED, Power, Value, is_governed
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.places import audit_files, home_folder
from vnuma.engine.access.target import Target
from vnuma.engine.audit.journal import Journal, edits_of
from vnuma.engine.audit.log_file import read_audit_file
from vnuma.engine.cell.dataset import DATABASE
from vnuma.engine.lease.baseline_document import DEADLINES
from vnuma.engine.lease.foreign_changes import written
from vnuma.engine.lease.identity import find_by_key
from vnuma.engine.lease.run_mark import parse_mark
from vnuma.engine.lease.vcenter_retry import RESTORING, VCenterRetry
from vnuma.engine.restore.part import Choice, HeldLease, Restored
from vnuma.engine.restore.restore_vm import Source, VmRestore, about_power, at_vcenter
from vnuma.errors import (
    EnvironmentProblem,
    InputError,
    NotAtBaseline,
    RestoreConflict,
    StoreError,
    VmHeld,
    VnumaError,
)
from vnuma.store import runs
from vnuma.store.audit import AuditLine, changes
from vnuma.store.open import Store
from vnuma.vsphere import apply, read, run_mark
from vnuma.vsphere.connect import Session, connect

_MARK = run_mark.LEASE_KEY

_DONE = "restored"
"""The log's action for a VM that was restored from it: its earlier lines have been answered."""


@dataclass(frozen=True)
class Unanswered:
    """What a run unknown to the store left on a VM, by the log's changes and notes about it, `lines`."""

    vm: str
    vm_key: str
    run: str
    lines: Sequence[AuditLine]

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """The net effect of its changes, including the mark, without the study's database."""
        return tuple(edit for edit in net(edits_of(self.lines)) if edit.setting != DATABASE)

    @property
    def database(self) -> Value:
        """The study's database, which stays in the guest; None without one."""
        return next((it.after for it in net(edits_of(self.lines)) if it.setting == DATABASE), None)

    @property
    def written(self) -> dict[str, set[Value]]:
        """Every value that it wrote, by setting of the VM."""
        known = {edit.setting for edit in self.settings}
        return {
            name: values
            for name, values in written([list(line.change) for line in self.lines]).items()
            if name in known
        }

    @property
    def rules(self) -> PowerRules:
        """The study's deadlines, or the usual ones where an earlier version did not note them."""
        noted = [line.detail for line in self.lines if line.action == DEADLINES]
        return PowerRules.model_validate_json(noted[-1] or "{}") if noted else PowerRules()

    @property
    def settings(self) -> tuple[Edit, ...]:
        """The edits to the VM itself, in their order."""
        return tuple(edit for edit in self.edits if edit.setting in TYPED or is_governed(edit.setting))

    @property
    def inside(self) -> tuple[Edit, ...]:
        """The edits inside the guest, which vSphere cannot undo."""
        known = {edit.setting for edit in self.settings} | {_MARK, "power"}
        return tuple(edit for edit in self.edits if edit.setting not in known)

    @property
    def power(self) -> Power | None:
        """The power state before; None where the log shows it restored."""
        before = [edit.before for edit in self.edits if edit.setting == "power"]
        return Power(str(before[0])) if before else None


def unanswered(store: Store, file: Path | None = None) -> tuple[Unanswered, ...]:
    """VMs in the audit file that no run of the store covers; empty without a file.

    `file` defaults to all of the store's own, read as one, since a run's changes may be spread over several.
    Raises InputError for a file that is not an audit log.
    """
    own = audit_files(store.place)
    files = own if file is None or file in own else (file,)
    with store.read() as connection:
        created = {run.name: run.created_at for run in runs.list_runs(connection)}
    mine: dict[tuple[str, str], list[AuditLine]] = {}
    for line in chain.from_iterable(map(read_audit_file, files)):
        # Each store has its own quick.1: a run that began after the line was written is another one.
        if line.run and not (line.run in created and created[line.run] <= line.at):
            mine.setdefault((line.vm_key, line.run), []).append(line)
            if line.action == _DONE:
                del mine[line.vm_key, line.run]
    found = (Unanswered(lines[-1].vm, key, run, changes(lines)) for (key, run), lines in mine.items())
    return tuple(one for one in found if one.edits)


def undone_by_hand(one: Unanswered, store: Store) -> NotAtBaseline:
    """The error for a VM that `vnuma restore` cannot restore from its store."""
    return NotAtBaseline(
        f"{one.vm} may not be at its baseline: according to the audit log, {one.run}, which this store "
        f"does not contain, changed {', '.join(edit.setting for edit in one.edits)} and did not undo "
        "it.",
        fix=f"vnuma restore --from-audit {audit_files(store.place)[-1]} -i INVENTORY",
    )


@dataclass(frozen=True)
class AuditRestoration:
    """The restore of one target from the audit log; what is inside its guest, a person sets."""

    store: Store
    one: Unanswered
    target: Target
    choice: Choice
    say: Callable[[str], None]

    def plan(self) -> list[str]:
        """What `restore` would change, by line. Raises what it raises before its first change."""
        if self.target.vcenter is None:
            return [_left_inside(self.one).what]
        with connect(vcenter(self.target)) as session:
            facts = self._look(session)
        edits = [
            edit
            for edit in self._source.plan(self.choice, facts, self.target).changes
            if edit.setting != _MARK
        ]
        head = f"{self.one.vm}, left by {self.one.run}: {len(edits)} settings would be restored"
        return [head, *map(str, edits)]

    def restore(self) -> str:
        """Undo the log's changes, read them back, remove the mark; returns a sentence about it.

        Raises VmHeld for a VM that another run has marked, RestoreConflict when somebody else changed a
        setting and `choice` is `refuse`, NotAtBaseline when it could not be restored and for settings inside
        the guest, which stay, and StoreError for a VM that was restored but whose log could not be written.
        """
        one, unwritten = self.one, list[StoreError]()
        if self.target.vcenter is None:
            raise _left_inside(one)
        # A line that cannot be written must not prevent a restore.
        journal = Journal(self.store, one.vm_key, one.vm, run_name=one.run, on_store_error=unwritten.append)

        def at(session: Session) -> Restored:
            self._look(session)
            held = HeldLease(apply.no_fence, journal)
            return VmRestore(self._source, self.target, self.choice, held, session, self.say).done()

        def tell(_tries: int, error: EnvironmentProblem, pause: float) -> None:
            self.say(f"{RESTORING} {one.vm}: {error.what} Trying again in {pause:.0f} s.")

        patience = VCenterRetry(one.rules.vcenter_retry_s)
        try:
            done = at_vcenter(self._source, self.target, home_folder(), self.say, at, patience, tell)
        except (NotAtBaseline, RestoreConflict, VmHeld):
            raise
        except VnumaError as error:
            raise NotAtBaseline(
                f"{one.vm} may not be at its baseline: {error.what}",
                fix="Fix the cause, then repeat the command.",
            ) from error
        settings = sum(edit.setting not in (_MARK, "power") for edit in done.changes)
        words = f"{one.vm}: {settings} settings restored from the audit log, {done.power}"
        journal.note(_DONE, words)
        if unwritten:
            raise StoreError(f"{unwritten[0].what} {words}; only the audit log is not up to date.")
        if one.inside:
            raise _left_inside(one)
        return f"{words}; database {one.database} stays in its SQL Server" if one.database else words

    def _look(self, session: Session) -> VmFacts:
        facts = read.read_vm(session, find_by_key(session, self.one.vm_key, self.one.vm))
        mark = self._foreign(facts.lease)
        if mark:
            raise VmHeld(
                f"{facts.name} is under study by {mark['holder']}, run {mark['run']}, since {mark['since']}.",
                fix="Let that run restore it. Nothing was changed.",
            )
        return facts

    def _foreign(self, text: str | None) -> dict[str, str] | None:
        mark = parse_mark(text)
        return None if mark is None or mark["run"] == self.one.run else mark

    @property
    def _source(self) -> Source:
        one = self.one
        before = {edit.setting: edit.before for edit in one.settings}
        return Source(
            vm_key=one.vm_key,
            name=one.vm,
            where=one.vm,
            run=one.run,
            rules=one.rules,
            power=one.power,
            before=lambda now: settings_after(now, before),
            written=one.written,
            untouched=False,
            foreign_mark=self._foreign,
            power_lines=lambda: about_power(one.lines),
            choose="Add --theirs or --baseline to the command.",
        )


def _left_inside(one: Unanswered) -> NotAtBaseline:
    """The error for settings in a guest, with their values from before the run."""
    before = ", ".join(f"{edit.setting} {value_words(edit.before)}" for edit in one.inside)
    return NotAtBaseline(
        f"{one.vm}: settings inside the guest may still be as {one.run} set them; before it they were: "
        f"{before}.",
        fix="Set them by hand there.",
    )


def chosen(found: Iterable[Unanswered], names: Collection[str]) -> tuple[Unanswered, ...]:
    """Those with these names, or all. Raises InputError for a name that the log does not have."""
    kept = tuple(one for one in found if not names or one.vm in names)
    missing = ", ".join(sorted(set(names) - {one.vm for one in kept}))
    if missing:
        raise InputError(
            f"The audit log contains nothing to undo on {missing}.",
            fix="Remove the name: vnuma restore --from-audit FILE --dry-run lists all.",
        )
    return kept
