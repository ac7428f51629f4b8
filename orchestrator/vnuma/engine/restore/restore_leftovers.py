"""Restore what runs have left: the work of `vnuma restore`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.inventory import read_targets, stored_target
from vnuma.engine.access.locking import name_of
from vnuma.engine.access.places import audit_files
from vnuma.engine.access.target import Target
from vnuma.engine.audit.log_file import check
from vnuma.engine.audit.verify import compare
from vnuma.engine.cell.dataset import dataset_exists
from vnuma.engine.lease.baseline_document import refuse_altered
from vnuma.engine.lease.run_mark import parse_mark
from vnuma.engine.lease.supervision import is_alive, release_dead_supervisor, stop_unless_worked_on
from vnuma.engine.restore.restore import Restoration, restoration_from_store
from vnuma.engine.restore.restore_from_audit import (
    Unanswered,
    plan_from_log,
    restore_from_log,
    unanswered,
    undone_by_hand,
)
from vnuma.engine.restore.restore_vm import Choice
from vnuma.errors import InputError, NotAtBaseline, RestoreConflict, VmHeld, VnumaError
from vnuma.store import baselines, runs
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.store.types import iso
from vnuma.vsphere import read, run_mark
from vnuma.vsphere.connect import connect


@dataclass
class RestoreReport:
    """Sentences about VMs that were restored, and the errors of the others.

    `kept` says what stays in a guest on purpose: the dataset of a run that may continue.
    """

    done: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    problems: list[VnumaError] = field(default_factory=list)

    @property
    def ranked(self) -> list[VnumaError]:
        """The distinct problems; the first decides the exit code: a VM not at its baseline, if any."""
        ranked = sorted(self.problems, key=lambda problem: not isinstance(problem, NotAtBaseline))
        return list({str(problem): problem for problem in reversed(ranked)}.values())[::-1]


@dataclass(frozen=True)
class RestoreRequest:
    """Which VMs to restore, and how; all that were left if neither names nor run are given.

    `say` hears of the progress. Only VMs of `site` are restored; None: the controller's own, and those named.
    `log` is the audit log to restore from, instead of the store.
    """

    names: Collection[str] = ()
    run: str | None = None
    inventory: Path | None = None
    choice: Choice = "refuse"
    say: Callable[[str], None] = lambda _: None
    site: str | None = None
    log: Path | None = None

    @property
    def everything(self) -> bool:
        """Whether neither a VM nor a run was named."""
        return not (self.names or self.run)

    def inventory_for(self, owner: Run) -> Path:
        """The given inventory, else the one that the run was started with."""
        return self.inventory or Path(owner.inventory or "inventory")


def restore_leftovers(store: Store, wanted: RestoreRequest) -> RestoreReport:
    """Restore the VMs that a run has left; a failure with one does not stop the others.

    A VM of a living run is in use, which is a problem too. Raises InputError for an unknown VM or run.
    """
    report = RestoreReport()
    if wanted.log:
        for one, target in _in_log(store, wanted.log, wanted):
            try:
                report.done.append(restore_from_log(store, one, target, wanted.choice, wanted.say))
            except VnumaError as error:
                report.problems.append(error)
        return report
    for row, owner in leftover_vms(store, wanted):
        try:
            work = _restoration(store, wanted, row, owner)
            release_dead_supervisor(store, owner)
            done = work.restore()
            report.done.append(done.words)
            if not done.lab_ended and dataset_exists(store, work.context.study, row):
                report.kept.append(_kept(work, str(wanted.inventory_for(owner))))
            stop_unless_worked_on(store, owner)
        except VnumaError as error:
            report.problems.append(error)
    try:
        report.problems += [
            undone_by_hand(one, store)
            for one in unanswered(store)
            if wanted.run in (None, one.run) and (not wanted.names or one.vm in wanted.names)
        ]
        if wanted.inventory and wanted.everything:
            report.problems += _marked(store, wanted.inventory, wanted.site)
    except VnumaError as error:  # must not hide what was restored
        report.problems.append(error)
    return report


def show_leftovers(store: Store, wanted: RestoreRequest) -> list[str]:
    """What `restore_leftovers` would change, by line; empty where nothing needs restoring."""
    if wanted.log:
        left = _in_log(store, wanted.log, wanted)
        return [line for one, target in left for line in plan_from_log(one, target, wanted.choice)]
    lines = []
    for row, owner in leftover_vms(store, wanted):
        if is_alive(owner) and wanted.everything:
            lines.append(f"{row.name} is in use by {owner.name}, which is running")
            continue
        try:
            work = _restoration(store, wanted, row, owner)
            refuse_altered(store, owner, row)
            planned, files = work.plan().changes, "; its files would be removed" if work.guest else ""
        except (RestoreConflict, NotAtBaseline) as error:
            lines.append(str(error))
            continue
        count = sum(edit.setting not in ("power", run_mark.LEASE_KEY) for edit in planned)
        lines.append(f"{row.name}, left by {owner.name}: {count} settings would be restored{files}")
        lines += [f"  {edit}" for edit in planned]
    return lines


def leftover_vms(store: Store, wanted: RestoreRequest) -> Iterator[tuple[Vm, Run]]:
    """VMs to restore: those not at their baseline, and those still leased; of `site` alone if given.

    Raises InputError for an unknown VM or run.
    """
    with store.read() as connection:
        run = runs.get_run(connection, wanted.run) if wanted.run else None
        if run:
            runs.refuse_imported(connection, run.id)
        rows = baselines.unrestored(connection)
        missing = set(wanted.names) - baselines.studied(connection)
    unknown = ", ".join(sorted(missing - {one.vm for one in unanswered(store)})) if missing else ""
    if unknown:
        raise InputError(
            f"Nothing to restore on {unknown}: in no run of this store.",
            fix="vnuma status lists the runs and their VMs.",
        )
    for row, owner in rows:
        asked_for = not wanted.names or row.name in wanted.names
        if asked_for and wanted.site in (None, row.node) and (run is None or owner.id == run.id):
            yield row, owner


def _restoration(store: Store, wanted: RestoreRequest, row: Vm, owner: Run) -> Restoration:
    """Raises VmHeld while the VM's run is alive, NotAtBaseline for a VM of another site."""
    if is_alive(owner):
        raise VmHeld(
            f"{row.name} is in use by {owner.name}, which is running.",
            fix=f"vnuma stop {owner.name}. If that does not end it: kill -9 {owner.supervisor_pid} on "
            f"{name_of(owner.supervisor_host or '')}, then: vnuma restore {row.name}",
        )
    if row.node != wanted.site and (wanted.site or row.name not in wanted.names):
        raise NotAtBaseline(
            f"{row.name} may not be at baseline since {owner.name}, and belongs to the site {row.node}.",
            fix=f"There: vnuma restore --site {row.node} -i INVENTORY",
        )
    inventory = wanted.inventory_for(owner)
    return restoration_from_store(store, owner, row, inventory, choice=wanted.choice, say=wanted.say)


def _marked(store: Store, inventory: Path, site: str | None) -> Iterator[VnumaError]:
    """VMs of the inventory with the mark of a run that the store does not know."""
    with store.read() as connection:
        known = {(run.name, iso(run.created_at)) for run in runs.list_runs(connection)}
    for target in read_targets(inventory).values():
        if target.node != site:
            continue
        try:
            with connect(vcenter(target)) as session:
                mark = parse_mark(run_mark.read_mark(session, read.find_vm(session, target.vm)).text)
        except VnumaError as error:
            yield error
            continue
        if mark and (mark["run"], mark.get("created")) not in known:
            yield VmHeld(
                f"{target.name} carries the mark of {mark['run']}, started by {mark['holder']} on "
                f"{mark['since']}; this store does not contain that run.",
                fix="Let that run restore it. If its store is lost: vnuma restore --from-audit FILE",
            )


def _in_log(store: Store, log: Path, wanted: RestoreRequest) -> list[tuple[Unanswered, Target]]:
    """What to undo from the log. Says why it may not be the original state: an altered log is still the only
    record. Raises InputError for a VM that the log does not have.
    """
    left = [one for one in unanswered(store, log) if not wanted.names or one.vm in wanted.names]
    missing = ", ".join(sorted(set(wanted.names) - {one.vm for one in left}))
    if missing:
        raise InputError(
            f"The audit log contains nothing to undo on {missing}.",
            fix="Remove the name: vnuma restore --from-audit FILE --dry-run lists all.",
        )
    inventory = wanted.inventory or Path("inventory")
    found = [(one, stored_target(inventory, one.vm_key, one.vm)) for one in left]
    own = audit_files(store.place)
    files = {file: check(file) for file in {log, *own}}
    doubts = [files[log].problem and f"{log}: {files[log].problem}."]
    doubts += [compare(store, files).contradiction(log)] if log in own else []
    for words in filter(None, doubts):
        wanted.say(f"Note      {words} Compare the restored settings with a backup.")
    return found


def _kept(work: Restoration, inventory: str) -> str:
    vm, database = work.context.vm.name, work.context.study.dataset.database
    drop = ("ansible-playbook", "vnuma.vnuma.dataset", "-i", inventory, "--limit", vm)
    values = ("-e", "vnuma_dataset_state=absent", "-e", f"sql_dataset_database={database}")
    return (
        f"{vm}: database {database} is kept for vnuma run --resume {work.context.run.name}; to drop it: "
        f"{shlex.join((*drop, *values))}"
    )
