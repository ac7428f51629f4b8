"""Restore without the store, from the changes that the audit log's file also records.

A store that was deleted during a run no longer knows the run, and the next one would take the changed VM as
its baseline. So `vnuma restore` reads the file next to the store, and undoes changes of runs that the store
lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from vnuma.domain.study.study import Power as PowerRules
from vnuma.domain.vm.change import Change, Edit, change_to, net, value_words
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import TYPED, Power, is_governed
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.locking import vm_lock
from vnuma.engine.access.places import audit_files, home_folder
from vnuma.engine.access.target import VmTarget
from vnuma.engine.audit.journal import Journal, edits_of, read_audit_file
from vnuma.engine.cell.power_switch import PowerSwitch
from vnuma.engine.lease.foreign_changes import ForeignChange
from vnuma.engine.lease.identity import find_by_key
from vnuma.engine.lease.run_mark import parse_mark
from vnuma.engine.restore.restore import Choice, kept_settings
from vnuma.errors import InputError, NotAtBaseline, VmHeld
from vnuma.store import runs
from vnuma.store.audit import AuditLine
from vnuma.store.open import Store
from vnuma.vsphere import apply, read, run_mark
from vnuma.vsphere.connect import Session, VmRef, connect

_MARK = run_mark.LEASE_KEY


@dataclass(frozen=True)
class Unanswered:
    """What a run unknown to the store left on a VM: `edits` as they were made, including the mark."""

    vm: str
    vm_key: str
    run: str
    edits: tuple[Edit, ...]

    @property
    def settings(self) -> tuple[Edit, ...]:
        """The edits to the VM itself, in their order."""
        return tuple(edit for edit in self.edits if edit.setting in TYPED or is_governed(edit.setting))

    @property
    def inside(self) -> tuple[str, ...]:
        """Settings inside the guest, which vSphere cannot undo."""
        known = {edit.setting for edit in self.settings} | {_MARK, "power"}
        return tuple(edit.setting for edit in self.edits if edit.setting not in known)

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
    found = (Unanswered(lines[-1].vm, key, run, net(edits_of(lines))) for (key, run), lines in mine.items())
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
class MachineByHand:
    """A Linux machine whose settings only the log has: a person restores it."""

    one: Unanswered

    def plan(self) -> list[str]:
        """What to set."""
        return [self._error().what]

    def restore(self) -> str:
        """Raises NotAtBaseline with what to set."""
        raise self._error()

    def _error(self) -> NotAtBaseline:
        back = ", ".join(f"{edit.setting} {value_words(edit.before)}" for edit in self.one.edits)
        return NotAtBaseline(
            f"{self.one.vm}, a Linux machine, may still have the settings of {self.one.run}; before "
            f"the run they were: {back}.",
            fix="Set them by hand, as root there.",
        )


@dataclass(frozen=True)
class AuditRestoration:
    """The restore of one VM from the audit log."""

    store: Store
    one: Unanswered
    target: VmTarget
    choice: Choice
    say: Callable[[str], None]

    def plan(self) -> list[str]:
        """What `restore` would change, by line. Raises what it raises before its first change."""
        with connect(vcenter(self.target)) as session:
            _, facts = self._look(session)
        lines = [str(edit) for edit in self._change(facts)]
        if self._wanted(facts) is not facts.power:
            lines.append(f"power: {facts.power} -> {self._wanted(facts)}")
        return [f"{self.one.vm}, left by {self.one.run}: {len(lines)} settings would be restored", *lines]

    def restore(self) -> str:
        """Undo the log's changes, read them back, remove the mark; returns a sentence about it.

        Raises VmHeld for a VM that another run has marked, RestoreConflict when somebody else changed a
        setting and `choice` is `refuse`, NotAtBaseline for settings inside the guest, which stay.
        """
        one = self.one
        lock = vm_lock(home_folder(), one.vm_key, one.vm, say=self.say)
        with lock, connect(vcenter(self.target)) as session:
            ref, facts = self._look(session)
            wanted, change = self._wanted(facts), self._change(facts)
            journal = Journal(self.store, one.vm_key, one.vm, run_name=one.run)
            switch = PowerSwitch(session, ref, PowerRules(), apply.no_fence, journal, self.say)
            if change:
                facts = self._undo(switch, facts, change)
            if wanted is Power.OFF and facts.power is not wanted:
                switch.off(back_on=False)
            elif facts.power is not wanted:
                self.say(f"powering {one.vm} on")
                switch.on_again(None)
            mark = run_mark.read_mark(session, ref)
            if mark.text is not None:
                with journal.change("mark", [Edit(_MARK, one.run, None)]):
                    run_mark.write_mark(session, ref, None, mark.change_version)
            run_mark.clear_note(session, ref)
        if one.inside:
            raise NotAtBaseline(
                f"{one.vm}: {', '.join(one.inside)} inside the guest may still be as {one.run} set them.",
                fix=f"Set them by hand; vnuma audit, or the log, shows the values from before {one.run}.",
            )
        return f"{one.vm}: {len(change.edits)} settings restored from the audit log, {wanted}"

    def _look(self, session: Session) -> tuple[VmRef, VmFacts]:
        ref = find_by_key(session, self.one.vm_key, self.one.vm)
        facts = read.read_vm(session, ref)
        mark = parse_mark(facts.lease)
        if mark and mark["run"] != self.one.run:
            raise VmHeld(
                f"{facts.name} is under study by {mark['holder']}, run {mark['run']}, since {mark['since']}.",
                fix="Let that run restore it. Nothing was changed.",
            )
        return ref, facts

    def _wanted(self, facts: VmFacts) -> Power:
        return self.one.power or facts.power

    def _change(self, facts: VmFacts) -> Change:
        """Back to the values before each of the run's edits, except where somebody else's value is kept."""
        foreign = [
            ForeignChange(edit.setting, edit.before, edit.after, facts.settings.get(edit.setting))
            for edit in self.one.settings
            if edit.setting != "memoryReservation"  # vSphere moves it with the lock to all memory
            and change_to(facts.settings, {edit.setting: edit.before})
            and change_to(facts.settings, {edit.setting: edit.after})
        ]
        fix = "Add --theirs or --baseline to the command."
        theirs = kept_settings(self.one.vm, foreign, self.choice, fix)
        wanted = {edit.setting: edit.before for edit in self.one.settings if edit.setting not in theirs}
        return change_to(facts.settings, wanted)

    def _undo(self, switch: PowerSwitch, facts: VmFacts, change: Change) -> VmFacts:
        if change.needs_power_off and facts.power is not Power.OFF:
            self.say(f"shutting {facts.name} down")
            switch.off(back_on=True)
            facts = read.read_vm(switch.session, switch.ref)
        self.say(f"restoring {len(change.edits)} settings of {facts.name}")
        with switch.journal.change("restore", change):
            return apply.reconfigure(switch.session, switch.ref, change, seen=facts)


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
