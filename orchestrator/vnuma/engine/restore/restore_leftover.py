"""Restore what runs have left: the work of `vnuma restore`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.inventory import read_targets, stored_target
from vnuma.engine.access.machine_shell import PlayedShell
from vnuma.engine.access.places import store_url
from vnuma.engine.access.target import AnyTarget
from vnuma.engine.lease.audit_chain import read_chain
from vnuma.engine.lease.baseline import parse_mark
from vnuma.engine.lease.supervision import is_alive, is_worked_on, release_dead_supervisor
from vnuma.engine.lease.unrestored_vms import unrestored_vms
from vnuma.engine.restore.restoration import Choice
from vnuma.engine.restore.restore_from_audit import (
    AuditRestoration,
    MachineByHand,
    chosen,
    unanswered,
    undone_by_hand,
)
from vnuma.engine.restore.restore_target import BY_AUDIT, restoration_of
from vnuma.errors import InputError, NotAtBaseline, RestoreConflict, VmHeld, VnumaError
from vnuma.store import runs
from vnuma.store.open import Store, open_store
from vnuma.store.rows import Run, Vm
from vnuma.store.states import RunState
from vnuma.store.types import iso
from vnuma.vsphere import lease_mark, read
from vnuma.vsphere.connect import connect

_NO_SETTINGS = ("power", lease_mark.LEASE_KEY)
"""Changes of a restore that are shown but not counted as settings."""


@dataclass
class RestoreReport:
    """Sentences about VMs that were restored or are in use, and the errors of the others.

    `kept` says what stays in a guest on purpose: the dataset of a run that may continue.
    """

    done: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    in_use: list[str] = field(default_factory=list)
    problems: list[VnumaError] = field(default_factory=list)

    @property
    def others(self) -> list[VnumaError]:
        """The distinct problems except the one that `raise_for_outcome` raises."""
        told = {str(problem): problem for problem in reversed(self._ranked)}
        return [problem for words, problem in reversed(told.items()) if words != str(self._ranked[0])]

    def raise_for_outcome(self) -> None:
        """Raise the error that decides the exit code: first of all, a VM not at its baseline."""
        for problem in self._ranked:
            raise problem

    @property
    def _ranked(self) -> list[VnumaError]:
        return sorted(self.problems, key=lambda problem: not isinstance(problem, NotAtBaseline))


def restore_leftovers(
    url: str | None,
    names: list[str],
    run: str | None,
    inventory: Path | None,
    choice: Choice,
    say: Callable[[str], None],
    elsewhere: Collection[str] = (),
) -> RestoreReport:
    """Restore the VMs that a run has left; a failure with one does not stop the others.

    A VM of a living run is in use, which is a problem only if its name or run was given. VMs `elsewhere` are
    left to the nodes that reach them. Raises InputError for an unknown VM or run.
    """
    store = open_store(store_url(url))
    outcome = RestoreReport()
    for row, owner in leftover_vms(store, names, run):
        if row.name in elsewhere:
            continue
        if is_alive(owner) and not (names or run):
            outcome.in_use.append(f"{row.name}, by {owner.name}, which is running")
            continue
        try:
            target, study = _target(row, owner, inventory), _study(store, owner)
            shell = PlayedShell(row.name, inventory_for(owner, inventory))
            release_dead_supervisor(store, owner)
            work = restoration_of(store, owner, study, row, target, choice=choice, say=say, shell=shell)
            outcome.done.append(work.restore().words)
            if work.keeps_database():
                outcome.kept.append(_kept(study, row, owner, inventory_for(owner, inventory)))
            _settle(store, owner)
        except VnumaError as error:
            outcome.problems.append(error)
    try:
        outcome.problems += [
            undone_by_hand(one, store)
            for one in unanswered(store)
            if run in (None, one.run) and (not names or one.vm in names)
        ]
        if inventory and not names and not run:
            outcome.problems += _marked(store, inventory, elsewhere)
    except VnumaError as error:  # must not hide what was restored
        outcome.problems.append(error)
    return outcome


def _marked(store: Store, inventory: Path, elsewhere: Collection[str]) -> Iterator[VnumaError]:
    """VMs of the inventory with the mark of a run that the store does not know."""
    with store.read() as connection:
        known = {(run.name, iso(run.created_at)) for run in runs.list_runs(connection)}
    for target in read_targets(inventory).values():
        if target.name in elsewhere:
            continue
        try:
            with connect(vcenter(target)) as session:
                mark = parse_mark(lease_mark.read_mark(session, read.find_vm(session, target.vm)).text)
        except VnumaError as error:
            yield error
            continue
        if mark and (mark["run"], mark.get("created")) not in known:
            yield VmHeld(
                f"{target.name} carries the mark of {mark['run']}, started by {mark['holder']} on "
                f"{mark['since']}; this store does not contain that run.",
                fix="Let that run restore it. If its store is lost: vnuma restore --from-audit FILE",
            )


def restore_by_audit(
    url: str | None,
    file: Path,
    names: list[str],
    inventory: Path,
    choice: Choice,
    say: Callable[[str], None],
) -> RestoreReport:
    """Restore from the audit log `file` what runs unknown to the store have left."""
    outcome = RestoreReport()
    works = _by_audit(open_store(store_url(url)), file, names, inventory, choice, say)
    for words in _doubts(file):
        say(words)
    for work in works:
        try:
            outcome.done.append(work.restore())
        except VnumaError as error:
            outcome.problems.append(error)
    return outcome


def show_by_audit(
    url: str | None, file: Path, names: list[str], inventory: Path, choice: Choice
) -> list[str]:
    """What `restore_by_audit` would change, by line."""
    works = _by_audit(open_store(store_url(url)), file, names, inventory, choice, lambda _: None)
    lines = [line for work in works for line in work.plan()] or ["The audit log contains nothing to undo."]
    return [*_doubts(file), *lines]


def _doubts(file: Path) -> list[str]:
    """Why the restored state may not be the original one: even an altered log is the only record."""
    problem = read_chain(file).problem
    if problem is None:
        return []
    return [f"Note      {file}: {problem}. Compare the restored settings with a backup, or with syslog."]


def _by_audit(
    store: Store,
    file: Path,
    names: list[str],
    inventory: Path,
    choice: Choice,
    say: Callable[[str], None],
) -> list[AuditRestoration | MachineByHand]:
    found = [
        (one, stored_target(inventory, one.vm_key, one.vm)) for one in chosen(unanswered(store, file), names)
    ]
    return [BY_AUDIT[target.kind](store, one, target, choice, say) for one, target in found]


def _settle(store: Store, owner: Run) -> None:
    """Mark a run whose VM a person restored as stopped, unless it is worked on elsewhere."""
    with store.write() as connection:
        run = runs.get_run(connection, owner.name)
        if not run.state.ended and not is_worked_on(connection, run):
            runs.set_run_state(connection, owner.id, RunState.STOPPED)


def _kept(study: Study, row: Vm, owner: Run, inventory: Path) -> str:
    database = study.dataset.database
    drop = ("ansible-playbook", "vnuma.vnuma.dataset", "-i", str(inventory), "--limit", row.name)
    values = ("-e", "vnuma_dataset_state=absent", "-e", f"sql_dataset_database={database}")
    return (
        f"{row.name}: database {database} is kept for vnuma run --resume {owner.name}; to drop it: "
        f"{shlex.join((*drop, *values))}"
    )


def show_leftovers(
    url: str | None,
    names: list[str],
    run: str | None,
    inventory: Path | None,
    choice: Choice,
    elsewhere: Collection[str] = (),
) -> list[str]:
    """What `restore_leftovers` would change, by line; empty where nothing needs restoring."""
    store = open_store(store_url(url))
    lines = []
    for row, owner in leftover_vms(store, names, run):
        if row.name in elsewhere:
            continue
        if is_alive(owner) and not (names or run):
            lines.append(f"{row.name} is in use by {owner.name}, which is running")
            continue
        target = _target(row, owner, inventory)
        try:
            study, shell = _study(store, owner), PlayedShell(row.name, inventory_for(owner, inventory))
            planned = restoration_of(store, owner, study, row, target, choice=choice, shell=shell).plan()
        except RestoreConflict as error:
            lines.append(str(error))
            continue
        files = "; its files would be removed" if planned.removes_files else ""
        count = sum(edit.setting not in _NO_SETTINGS for edit in planned.changes)
        lines.append(f"{row.name}, left by {owner.name}: {count} settings would be restored{files}")
        lines += [f"  {edit}" for edit in planned.changes]
    return lines


def _study(store: Store, owner: Run) -> Study:
    with store.read() as connection:
        return parse_study(runs.get_study(connection, owner.study_id).yaml, f"study of {owner.name}")


def leftover_vms(store: Store, names: list[str], run: str | None) -> Iterator[tuple[Vm, Run]]:
    """VMs to restore: those not at their baseline, and those still leased to a run.

    Raises InputError for an unknown VM or run.
    """
    with store.read() as connection:
        wanted_run = runs.get_run(connection, run).id if run else None
        if wanted_run is not None:
            runs.refuse_imported(connection, wanted_run)
        rows = unrestored_vms(connection)
    missing = set(names) - {row.name for row, _ in rows}
    unknown = ", ".join(sorted(missing - _by_log(store))) if missing else ""
    if unknown:
        raise InputError(
            f"Nothing to restore on {unknown}: at its baseline, or in no run of this store.",
            fix="vnuma status lists the VMs that are not at their baseline.",
        )
    for row, owner in rows:
        if (names and row.name not in names) or (wanted_run and owner.id != wanted_run):
            continue
        yield row, owner


def _by_log(store: Store) -> set[str]:
    """VMs that only the audit log knows."""
    return {one.vm for one in unanswered(store)}


def _target(row: Vm, owner: Run, inventory: Path | None) -> AnyTarget:
    """The target of a VM. Raises VmHeld while its run is alive."""
    if is_alive(owner):
        raise VmHeld(
            f"{row.name} is in use by {owner.name}, which is running.", fix=f"vnuma stop {owner.name}"
        )
    return stored_target(inventory_for(owner, inventory), row.vm_key, row.name)


def inventory_for(owner: Run, inventory: Path | None) -> Path:
    """The given inventory, else the one that the run was started with."""
    return inventory or Path(owner.inventory or "inventory")
