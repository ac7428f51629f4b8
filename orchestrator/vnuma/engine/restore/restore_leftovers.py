"""Restore what runs have left, by the store or by the audit log: the work of `vnuma restore`.

A store that was deleted during a run no longer knows the run, and the next one would take the changed VM as
its baseline. The audit log's file next to it still has every change, so that they can be undone from it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from vnuma.domain.vm.change import Edit, net, value_words
from vnuma.domain.vm.setting import TYPED, Power, is_governed
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.locking import name_of
from vnuma.engine.access.places import audit_file, home_folder
from vnuma.engine.access.target import Target, is_shaped
from vnuma.engine.audit.log import (
    PROGRAM,
    Journal,
    edits_of,
    journal_of,
    read_audit_file,
    verify_file,
    verify_store,
)
from vnuma.engine.cell.dataset import DATABASE, is_expected
from vnuma.engine.lease.baseline import DEADLINES, noted_deadlines, refuse_altered, written
from vnuma.engine.lease.supervision import is_alive, stop_unless_worked_on
from vnuma.engine.lease.vcenter_retry import RESTORING
from vnuma.engine.lease.whose_vm import parse_mark
from vnuma.engine.restore.restore import (
    context_in_store,
    has_guest,
    naming_all,
    plan_target,
    possibly_changed,
    restore_dead,
    restore_each,
    worst_first,
)
from vnuma.engine.restore.restore_vm import Choice, Restored, Source, about_power, facts_now, restore_vm
from vnuma.errors import (
    EnvironmentProblem,
    InputError,
    NotAtBaseline,
    StoreError,
    VmHeld,
    VnumaError,
)
from vnuma.store import cells, runs
from vnuma.store.audit import AuditLine, changes
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.store.tables import iso
from vnuma.vsphere import apply, read, run_mark
from vnuma.vsphere.connect import connect


@dataclass
class RestoreReport:
    """Sentences about VMs that were restored, and the errors of the others.

    `kept` says what stays in a guest on purpose: the dataset of a run that may continue.
    """

    done: list[str] = field(default_factory=list)
    problems: list[VnumaError] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    @property
    def ranked(self) -> list[VnumaError]:
        """The distinct problems, worst first."""
        distinct = dict[str, VnumaError]()
        for problem in worst_first(self.problems):
            distinct.setdefault(str(problem), problem)
        return list(distinct.values())


@dataclass(frozen=True)
class RestoreRequest:
    """Which VMs to restore, and how; all that were left if neither names nor run are given.

    `say` hears of the progress. Only VMs of `site` are restored; None: the controller's own, and those named.
    `log` is the audit log to restore from, instead of the store. `vm_only` leaves what programs have made.
    """

    names: Collection[str] = ()
    run: str | None = None
    inventory: Inventory | None = None
    choice: Choice = "refuse"
    say: Callable[[str], None] = lambda _: None
    site: str | None = None
    log: Path | None = None
    vm_only: bool = False
    _of_runs: dict[str, Inventory] = field(default_factory=dict)

    def inventory_for(self, owner: Run) -> Inventory:
        """The given inventory, else the one that the run was started with; each is read once."""
        path = owner.inventory or "inventory"
        return self.inventory or self._of_runs.setdefault(path, Inventory(Path(path)))


def restore_leftovers(store: Store, wanted: RestoreRequest) -> RestoreReport:
    """Restore the VMs that a run has left; a failure with one does not stop the others.

    A VM of a living run is in use, which is a problem too. Raises InputError for an unknown VM or run, and
    for `vm_only` of a machine that is no VM.
    """
    if wanted.log:
        log = _in_log(store, wanted.log, wanted)
        return RestoreReport(*restore_each(partial(restore_from_log, store, one, wanted) for one in log))
    report = RestoreReport()
    for row, owner in leftover_vms(store, wanted):
        try:
            context = _left_context(store, wanted, row, owner)
            done = restore_dead(context, wanted.choice, wanted.say)
            report.done.append(done.words)
            report.kept += _settle(wanted, context, done)
        except VnumaError as error:
            report.problems.append(error)
    try:
        report.problems += [
            undone_by_hand(one, store)
            for one in unanswered(store)
            if wanted.run in (None, one.run) and (not wanted.names or one.vm in wanted.names)
        ]
        if wanted.inventory and not (wanted.names or wanted.run):
            report.problems += _marked(store, wanted.inventory, wanted.site)
    except VnumaError as error:  # must not hide what was restored
        report.problems.append(error)
    return report


def restore_after_death(
    store: Store, targets: Mapping[str, Target], inventory: Inventory, site: str | None = None
) -> list[str]:
    """Restore those of the site's VMs that a dead run left changed; returns sentences about it.

    `inventory` is where the targets were read. Raises NotAtBaseline or RestoreConflict when one cannot be
    restored, since it must not be studied then.
    """

    def restored(vm: Vm, run: Run) -> str:
        done = restore_dead(context_in_store(store, run, vm, inventory, targets[vm.name]))
        stop_unless_worked_on(store, run)
        return f"Restored  {done.words} (left by {run.name}, whose controller died)"

    with store.read() as connection:
        left = cells.unrestored(connection)
    mine = [(vm, run) for vm, run in left if vm.name in targets and vm.site == site and not is_alive(run)]
    said, problems = restore_each(partial(restored, *one) for one in mine)
    if problems:
        raise naming_all(problems)
    return said


def show_leftovers(store: Store, wanted: RestoreRequest) -> list[str]:
    """What `restore_leftovers` would change, by line; empty where nothing needs restoring."""
    if wanted.log:
        plans = [partial(plan_from_log, one, wanted) for one in _in_log(store, wanted.log, wanted)]
    else:
        plans = [partial(_plan_left, store, wanted, *one) for one in leftover_vms(store, wanted)]
    lines: list[str] = []
    for plan in plans:
        try:
            lines += plan()
        except NotAtBaseline as error:
            lines.append(str(error))
    return lines


def _plan_left(store: Store, wanted: RestoreRequest, row: Vm, owner: Run) -> list[str]:
    if is_alive(owner) and not (wanted.names or wanted.run):
        return [f"{row.name} is in use by {owner.name}, which is running"]
    context = _left_context(store, wanted, row, owner)
    refuse_altered(store, owner, row)
    planned = plan_target(context, wanted.choice).changes
    files = "; what the study's programs left would be undone" if has_guest(context) else ""
    count = sum(edit.setting not in ("power", run_mark.LEASE_KEY) for edit in planned)
    head = f"{row.name}, left by {owner.name}: {count} settings would be restored{files}"
    return [head, *(f"  {edit}" for edit in planned)]


def leftover_vms(store: Store, wanted: RestoreRequest) -> list[tuple[Vm, Run]]:
    """VMs to restore: those not at their baseline, and those still leased; of `site` alone if given.

    Raises InputError for an unknown VM or run.
    """
    with store.read() as connection:
        run = runs.get_run(connection, wanted.run) if wanted.run else None
        if run:
            runs.refuse_imported(connection, run.id)
        rows = cells.unrestored(connection)
        missing = set(wanted.names) - cells.studied(connection)
    if unknown := ", ".join(sorted(missing and missing - {one.vm for one in unanswered(store)})):
        raise InputError(
            f"Nothing to restore on {unknown}: in no run of this store.",
            fix="vnuma status lists the runs and their VMs.",
        )
    return [
        (row, owner)
        for row, owner in rows
        if not wanted.names or row.name in wanted.names
        if wanted.site in (None, row.site) and (run is None or owner.id == run.id)
    ]


def _settle(wanted: RestoreRequest, context: VmContext, done: Restored) -> list[str]:
    """Settle the run of a restored VM. Returns what stays in its guest."""
    stop_unless_worked_on(context.store, context.run)
    if wanted.vm_only and has_guest(replace(context, vm_only=False)):
        journal_of(context).note("restore", _LEFT)
        return [f"{context.vm.name}: {_LEFT}"]
    if done.lab_ended or not is_expected(context):
        return []
    vm, run, database = context.vm.name, context.run, context.study.dataset.database
    drop = ["ansible-playbook", "vnuma.vnuma.dataset", "-i", str(wanted.inventory_for(run)), "--limit", vm]
    drop += ["-e", "vnuma_dataset_state=absent", "-e", f"sql_dataset_database={database}"]
    return [
        f"{vm}: database {database} is kept for vnuma run --resume {run.name}; to drop it: {shlex.join(drop)}"
    ]


_LEFT = "what the study's programs made was left (--vm-only)"


def _left_context(store: Store, wanted: RestoreRequest, row: Vm, owner: Run) -> VmContext:
    """Raises VmHeld while the VM's run is alive, NotAtBaseline for a VM of another site."""
    if is_alive(owner):
        raise VmHeld(
            f"{row.name} is in use by {owner.name}, which is running.",
            fix=f"vnuma stop {owner.name}. If that does not end it: kill -9 {owner.supervisor_pid} on "
            f"{name_of(owner.supervisor_host or '')}, then: vnuma restore {row.name}",
        )
    if wanted.vm_only and not is_shaped(row.vm_key):
        raise InputError(
            f"{row.name} is a machine that nothing shapes: --vm-only would restore nothing.",
            fix=f"vnuma restore {row.name}",
        )
    if row.site != wanted.site and (wanted.site or row.name not in wanted.names):
        raise NotAtBaseline(
            f"{row.name} may not be at baseline since {owner.name}, and belongs to the site {row.site}.",
            fix=f"There: vnuma restore --site {row.site} -i INVENTORY",
        )
    return context_in_store(store, owner, row, wanted.inventory_for(owner), vm_only=wanted.vm_only)


def _marked(store: Store, inventory: Inventory, site: str | None) -> Iterator[VnumaError]:
    """VMs of the inventory with the mark of a run that the store does not know."""
    with store.read() as connection:
        known = {(run.name, iso(run.created_at)) for run in runs.list_runs(connection)}
    for target in inventory.targets().values():
        if target.site != site:
            continue
        try:
            with connect(vcenter(target)) as session:
                text = run_mark.read_mark(session, read.find_vm(session, target.vm)).text
        except VnumaError as error:
            yield error
        else:
            yield from unknown_mark(target.name, text, known)


def unknown_mark(name: str, text: str | None, known: Collection[tuple[str, str | None]]) -> list[VnumaError]:
    """The error for a VM whose mark is none of the `known` runs', by name and time of creation."""
    mark = parse_mark(text)
    if mark is None or (mark["run"], mark.get("created")) in known:
        return []
    what = f"{name} carries the mark of {mark['run']}, started by {mark['holder']} on {mark['since']}"
    fix = "Let that run restore it. If its store is lost: vnuma restore --from-audit FILE"
    return [VmHeld(f"{what}; this store does not contain that run.", fix=fix)]


def _in_log(store: Store, log: Path, wanted: RestoreRequest) -> list[Unanswered]:
    """What to undo from the log. Says why it may not be the original state: an altered log is still the only
    record. Raises InputError for a VM that the log does not have.
    """
    left = [one for one in unanswered(store, log) if not wanted.names or one.vm in wanted.names]
    if missing := ", ".join(sorted(set(wanted.names) - {one.vm for one in left})):
        raise InputError(
            f"The audit log contains nothing to undo on {missing}.",
            fix="Remove the name: vnuma restore --from-audit FILE --dry-run lists all.",
        )
    if problem := (verify_store(store) if log == audit_file(store.place) else verify_file(log)).problem:
        wanted.say(f"Note      {problem.what} Compare the restored settings with a backup.")
    return left


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
    """VMs in the audit file, by default the store's, that no run of the store covers; empty without one.

    Raises InputError for a file that is not an audit log.
    """
    own = audit_file(store.place)
    if file is None and not own.exists():
        return ()
    with store.read() as connection:
        created = {run.name: run.created_at for run in runs.list_runs(connection)}
    mine: dict[tuple[str, str], list[AuditLine]] = {}
    for line in read_audit_file(file or own):
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
        fix=f"vnuma restore --from-audit {audit_file(store.place)} -i INVENTORY",
    )


def source_in_log(one: Unanswered, choice: Choice) -> Source:
    """What the log knows of the VM: the settings that the run changed, and the study's deadlines.

    An earlier version did not note those: then they are the usual ones.
    """
    before = {edit.setting: edit.before for edit in one.settings}
    power = [Power(str(edit.before)) for edit in one.edits if edit.setting == "power"]
    noted = [line.detail or "{}" for line in one.lines if line.action == DEADLINES]
    rules, execution_s = noted_deadlines(noted[-1] if noted else "{}")
    ours = written([list(line.change) for line in one.lines])

    return Source(
        vm_key=one.vm_key,
        name=one.vm,
        run=one.run,
        created=None,
        rules=rules,
        execution_s=execution_s,
        choice=choice,
        choose="Add --theirs or --baseline to the command.",
        power=power[0] if power else None,
        known=before,
        is_whole=False,
        written={name: values for name, values in ours.items() if name in before},
        power_lines=lambda: about_power(one.lines),
        held=VmHeld,
    )


def plan_from_log(one: Unanswered, wanted: RestoreRequest) -> list[str]:
    """What `restore_from_log` would change, by line. Raises what it raises before its first change."""
    target, source = _target_in_log(one, wanted), source_in_log(one, wanted.choice)
    facts = facts_now(source, target)
    planned = source.plan(facts, target).changes if facts else ()
    edits = [str(edit) for edit in planned if edit.setting != run_mark.LEASE_KEY]
    return [f"{one.vm}, left by {one.run}: {len(edits)} settings would be restored", *edits]


def restore_from_log(store: Store, one: Unanswered, wanted: RestoreRequest) -> str:
    """Undo the log's changes, read them back, remove the mark; returns a sentence about it.

    What is inside its guest, a person sets. Raises VmHeld for a VM that another run has marked,
    RestoreConflict when somebody else changed a setting and the choice is `refuse`, NotAtBaseline when it
    could not be restored, also for bugs, and for settings inside the guest, which stay; StoreError for a VM
    that was restored but whose log could not be written.
    """
    target = _target_in_log(one, wanted)
    unwritten = list[StoreError]()
    # A line that cannot be written must not prevent a restore.
    journal = Journal(store, one.vm_key, one.vm, run_name=one.run, on_store_error=unwritten.append)

    def tell(_tries: int, error: EnvironmentProblem, pause: float) -> None:
        wanted.say(f"{RESTORING} {one.vm}: {error.what} Trying again in {pause:.0f} s.")

    try:
        done = restore_vm(
            partial(source_in_log, one, wanted.choice),
            target,
            journal,
            home=home_folder(),
            fence=apply.no_fence,
            tell=tell,
            say=wanted.say,
        )
    except (NotAtBaseline, VmHeld):
        raise
    except Exception as error:
        raise possibly_changed(one.vm, error, "repeat the command.") from error
    settings = sum(edit.setting not in (run_mark.LEASE_KEY, "power") for edit in done.changes)
    words = f"{one.vm}: {settings} settings restored from the audit log, {done.power}"
    journal.note(_DONE, words)
    return left_after(one, words, unwritten)


def left_after(one: Unanswered, words: str, unwritten: Sequence[StoreError]) -> str:
    """`words` with what stays in the guest on purpose. Raises for all else that stays, and for the log."""
    if unwritten:
        raise StoreError(f"{unwritten[0].what} {words}; only the audit log is not up to date.")
    if one.inside:
        raise _left_inside(one)
    noted = [line.detail or "" for line in one.lines if line.action == PROGRAM]
    if ran := dict.fromkeys(words for words in noted if words.startswith("study_setup")):
        raise NotAtBaseline(
            f"{words}; what the study's programs changed, on {one.vm} or its client, is not undone: "
            f"{'; '.join(map(str, ran))}.",
            fix="Undo it there by hand.",
        )
    database = next((edit.after for edit in one.edits if edit.setting == DATABASE), None)
    return f"{words}; database {database} stays in its SQL Server" if database else words


def _target_in_log(one: Unanswered, wanted: RestoreRequest) -> Target:
    """Raises NotAtBaseline for a target without a VM, and InputError for one that the inventory lacks."""
    target = (wanted.inventory or Inventory(Path("inventory"))).stored_target(one.vm_key, one.vm)
    if target.vcenter is None:
        raise _left_inside(one)
    return target


def _left_inside(one: Unanswered) -> NotAtBaseline:
    """The error for settings in a guest, with their values from before the run."""
    before = ", ".join(f"{edit.setting} {value_words(edit.before)}" for edit in one.inside)
    return NotAtBaseline(
        f"{one.vm}: settings inside the guest may still be as {one.run} set them; before it they were: "
        f"{before}.",
        fix="Set them by hand there.",
    )
