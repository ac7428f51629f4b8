"""Restore without the store, from the changes that the audit log's file also records.

A store that was deleted during a run no longer knows the run, and the next one would take the changed VM as
its baseline. So `vnuma restore` reads the file next to the store, and undoes changes of runs that the store
lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from vnuma.domain.study.study import Power as PowerRules
from vnuma.domain.vm.change import Edit, net, settings_after, value_words
from vnuma.domain.vm.setting import TYPED, Power, is_governed
from vnuma.engine.access.places import audit_files, home_folder
from vnuma.engine.access.target import Target
from vnuma.engine.audit.journal import Journal, edits_of
from vnuma.engine.audit.log_file import read_audit_file
from vnuma.engine.cell.dataset import DATABASE
from vnuma.engine.lease.baseline_document import DEADLINES
from vnuma.engine.lease.foreign_changes import written
from vnuma.engine.lease.run_mark import parse_mark
from vnuma.engine.lease.vcenter_retry import RESTORING
from vnuma.engine.restore.restore_vm import Choice, Source, VmRestoration, about_power
from vnuma.errors import EnvironmentProblem, NotAtBaseline, StoreError, VmHeld, VnumaError
from vnuma.store import runs
from vnuma.store.audit import AuditLine, changes
from vnuma.store.open import Store
from vnuma.vsphere import apply, run_mark

_DONE = "restored"
"""The log's action for a VM that was restored from it: its earlier lines have been answered."""


@dataclass(frozen=True)
class Unanswered:
    """What a run unknown to the store left on a VM: the log's changes and notes about it, and their net
    effect, including the mark and the power state.
    """

    vm: str
    vm_key: str
    run: str
    lines: Sequence[AuditLine]
    edits: tuple[Edit, ...]

    @property
    def settings(self) -> tuple[Edit, ...]:
        """The edits to the VM itself, in their order."""
        return tuple(edit for edit in self.edits if edit.setting in TYPED or is_governed(edit.setting))

    @property
    def inside(self) -> tuple[Edit, ...]:
        """The edits inside the guest, which vSphere cannot undo. The study's database is none: it stays."""
        known = {edit.setting for edit in self.settings} | {run_mark.LEASE_KEY, "power", DATABASE}
        return tuple(edit for edit in self.edits if edit.setting not in known)


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
    whole = ((key, run, changes(lines)) for (key, run), lines in mine.items())
    found = (Unanswered(lines[-1].vm, key, run, lines, net(edits_of(lines))) for key, run, lines in whole)
    return tuple(one for one in found if any(edit.setting != DATABASE for edit in one.edits))


def undone_by_hand(one: Unanswered, store: Store) -> NotAtBaseline:
    """The error for a VM that `vnuma restore` cannot restore from its store."""
    names = ", ".join(edit.setting for edit in one.edits if edit.setting != DATABASE)
    return NotAtBaseline(
        f"{one.vm} may not be at its baseline: according to the audit log, {one.run}, which this store "
        f"does not contain, changed {names} and did not undo it.",
        fix=f"vnuma restore --from-audit {audit_files(store.place)[-1]} -i INVENTORY",
    )


def source_in_log(one: Unanswered, choice: Choice) -> Source:
    """What the log knows of the VM: the settings that the run changed, and the study's deadlines.

    An earlier version did not note those: then they are the usual ones.
    """
    before = {edit.setting: edit.before for edit in one.settings}
    power = [Power(str(edit.before)) for edit in one.edits if edit.setting == "power"]
    noted = [line.detail or "{}" for line in one.lines if line.action == DEADLINES]
    ours = written([list(line.change) for line in one.lines])

    def foreign(text: str | None) -> dict[str, str] | None:
        mark = parse_mark(text)
        return None if mark is None or mark["run"] == one.run else mark

    return Source(
        vm_key=one.vm_key,
        name=one.vm,
        where=one.vm,
        run=one.run,
        rules=PowerRules.model_validate_json(noted[-1]) if noted else PowerRules(),
        choice=choice,
        choose="Add --theirs or --baseline to the command.",
        power=power[0] if power else None,
        before=lambda now: settings_after(now, before),
        written={name: values for name, values in ours.items() if name in before},
        foreign_mark=foreign,
        power_lines=lambda: about_power(one.lines),
        held=VmHeld,
    )


def plan_from_log(one: Unanswered, target: Target, choice: Choice) -> list[str]:
    """What `restore_from_log` would change, by line. Raises what it raises before its first change."""
    if target.vcenter is None:
        return [_left_inside(one).what]
    planned = VmRestoration(source_in_log(one, choice), target).plan().changes
    edits = [str(edit) for edit in planned if edit.setting != run_mark.LEASE_KEY]
    return [f"{one.vm}, left by {one.run}: {len(edits)} settings would be restored", *edits]


def restore_from_log(
    store: Store, one: Unanswered, target: Target, choice: Choice, say: Callable[[str], None]
) -> str:
    """Undo the log's changes, read them back, remove the mark; returns a sentence about it.

    What is inside its guest, a person sets. Raises VmHeld for a VM that another run has marked,
    RestoreConflict when somebody else changed a setting and `choice` is `refuse`, NotAtBaseline when it could
    not be restored and for settings inside the guest, which stay, and StoreError for a VM that was restored
    but whose log could not be written.
    """
    if target.vcenter is None:
        raise _left_inside(one)
    unwritten = list[StoreError]()
    # A line that cannot be written must not prevent a restore.
    journal = Journal(store, one.vm_key, one.vm, run_name=one.run, on_store_error=unwritten.append)

    def tell(_tries: int, error: EnvironmentProblem, pause: float) -> None:
        say(f"{RESTORING} {one.vm}: {error.what} Trying again in {pause:.0f} s.")

    work = VmRestoration(source_in_log(one, choice), target, say)
    try:
        done = work.restore(home_folder(), apply.no_fence, journal, tell)
    except (NotAtBaseline, VmHeld):
        raise
    except VnumaError as error:
        raise NotAtBaseline(
            f"{one.vm} may not be at its baseline: {error.what}",
            fix="Fix the cause, then repeat the command.",
        ) from error
    settings = sum(edit.setting not in (run_mark.LEASE_KEY, "power") for edit in done.changes)
    words = f"{one.vm}: {settings} settings restored from the audit log, {done.power}"
    journal.note(_DONE, words)
    if unwritten:
        raise StoreError(f"{unwritten[0].what} {words}; only the audit log is not up to date.")
    if one.inside:
        raise _left_inside(one)
    database = next((edit.after for edit in one.edits if edit.setting == DATABASE), None)
    return f"{words}; database {database} stays in its SQL Server" if database else words


def _left_inside(one: Unanswered) -> NotAtBaseline:
    """The error for settings in a guest, with their values from before the run."""
    before = ", ".join(f"{edit.setting} {value_words(edit.before)}" for edit in one.inside)
    return NotAtBaseline(
        f"{one.vm}: settings inside the guest may still be as {one.run} set them; before it they were: "
        f"{before}.",
        fix="Set them by hand there.",
    )
