"""Put back what runs have left: the work of `vnuma restore`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study
from vnuma.domain.vm.change import Edit
from vnuma.engine.access.inventory import read_targets
from vnuma.engine.access.machine_shell import PlayedShell
from vnuma.engine.access.target import MACHINE_KEY, AnyTarget, Machine, Target
from vnuma.engine.cell.dataset import stands
from vnuma.engine.lease.context import home_folder, store_url
from vnuma.engine.lease.supervision import is_alive, release_dead_supervisor
from vnuma.engine.lease.unrestored_vms import unrestored_vms
from vnuma.engine.restore.machine_restore_plan import edits_back
from vnuma.engine.restore.restoration import Choice
from vnuma.engine.restore.restore_target import restore_target
from vnuma.engine.restore.restore_vm import VmRestoration
from vnuma.errors import InputError, NotAtBaseline, RestoreConflict, VmHeld, VnumaError
from vnuma.store import runs
from vnuma.store.open import Store, open_store
from vnuma.store.rows import Run, Vm
from vnuma.store.states import RunState


@dataclass
class RestoreReport:
    """Sentences about VMs that were put back or are in use, and the errors of those that were not.

    `kept` says what stays in a guest on purpose: the dataset of a run that may go on.
    """

    done: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    in_use: list[str] = field(default_factory=list)
    problems: list[VnumaError] = field(default_factory=list)

    def raise_for_outcome(self) -> None:
        """Raise what decides the exit code: a VM not at its baseline outranks everything else."""
        for problem in sorted(self.problems, key=lambda problem: not isinstance(problem, NotAtBaseline)):
            raise problem


def restore_leftovers(
    url: str | None,
    names: list[str],
    run: str | None,
    inventory: Path | None,
    choice: Choice,
    say: Callable[[str], None],
) -> RestoreReport:
    """Put back the VMs that a run has left. One that fails does not keep the others.

    A VM of a living run is in use: a problem only if it was asked for by its name or run.
    Raises InputError for an unknown VM or run.
    """
    store = open_store(store_url(url))
    outcome = RestoreReport()
    for row, owner in _left(store, names, run):
        if is_alive(owner) and not (names or run):
            outcome.in_use.append(f"{row.name}, by {owner.name}, which is running")
            continue
        try:
            target, study = _target(row, owner, inventory), _study(store, owner)
            release_dead_supervisor(store, owner)
            done = restore_target(
                store, owner, study, row, target, home=home_folder(), choice=choice, say=say
            )
            outcome.done.append(done.words)
            if not isinstance(target, Machine) and stands(store, row):
                outcome.kept.append(_kept(study, row, owner, _where(owner, inventory)))
            _settle(store, owner)
        except VnumaError as error:
            outcome.problems.append(error)
    return outcome


def _settle(store: Store, owner: Run) -> None:
    """A run whose VM was put back by a person has stopped."""
    with store.write() as connection:
        if not runs.get_run(connection, owner.name).state.ended:
            runs.set_run_state(connection, owner.id, RunState.STOPPED)


def _kept(study: Study, row: Vm, owner: Run, inventory: Path) -> str:
    database = study.dataset.database
    drop = ("ansible-playbook", "vnuma.vnuma.dataset", "-i", str(inventory), "--limit", row.name)
    values = ("-e", "vnuma_dataset_state=absent", "-e", f"sql_dataset_database={database}")
    return (
        f"{row.name}: database {database}, for vnuma run --resume {owner.name}; "
        f"to drop it: {shlex.join((*drop, *values))}"
    )


def show_leftovers(
    url: str | None, names: list[str], run: str | None, inventory: Path | None, choice: Choice
) -> list[str]:
    """What `restore_leftovers` would change, line by line."""
    store = open_store(store_url(url))
    lines = []
    for row, owner in _left(store, names, run):
        if is_alive(owner) and not (names or run):
            lines.append(f"{row.name} is in use by {owner.name}, which is running")
            continue
        target = _target(row, owner, inventory)
        try:
            changes = _changes_back(store, owner, row, target, choice)
        except RestoreConflict as error:
            lines.append(str(error))
            continue
        files = "; its files would be removed" if isinstance(target, Machine) else ""
        lines.append(f"{row.name}, left by {owner.name}: {len(changes)} settings would be put back{files}")
        lines += [f"  {edit.setting}: {edit.before} -> {edit.after}" for edit in changes]
    return lines or ["Every VM is at its baseline."]


def _changes_back(store: Store, owner: Run, row: Vm, target: AnyTarget, choice: Choice) -> Sequence[Edit]:
    """What putting it back would change. Raises RestoreConflict."""
    if not isinstance(target, Machine):
        return _restoration(store, owner, row, target, choice).plan().changes
    shell = PlayedShell(row.name, Path(owner.inventory or "inventory"))
    return list(edits_back(_study(store, owner), row, shell, choice).values())


def _restoration(store: Store, owner: Run, row: Vm, target: Target, choice: Choice) -> VmRestoration:
    return VmRestoration(store, owner, _study(store, owner), row, home_folder(), choice, target=target)


def _study(store: Store, owner: Run) -> Study:
    with store.read() as connection:
        return parse_study(runs.get_study(connection, owner.study_id).yaml, f"study of {owner.name}")


def _left(store: Store, names: list[str], run: str | None) -> Iterator[tuple[Vm, Run]]:
    """VMs to put back: those away from their baseline, and those still leased to a run."""
    with store.read() as connection:
        wanted_run = runs.get_run(connection, run).id if run else None
        if wanted_run is not None:
            runs.refuse_imported(connection, wanted_run)
        rows = unrestored_vms(connection)
    unknown = ", ".join(sorted(set(names) - {row.name for row, _ in rows}))
    if unknown:
        raise InputError(
            f"Nothing to put back of {unknown}: at its baseline, or in no run of this store.",
            fix="vnuma status lists the VMs that are not at their baseline.",
        )
    for row, owner in rows:
        if (names and row.name not in names) or (wanted_run and owner.id != wanted_run):
            continue
        yield row, owner


def _target(row: Vm, owner: Run, inventory: Path | None) -> AnyTarget:
    """Where the VM is reached. Raises VmHeld while its run is alive."""
    if is_alive(owner):
        raise VmHeld(
            f"{row.name} is in use by {owner.name}, which is running.", fix=f"vnuma stop {owner.name}"
        )
    if row.vm_key.startswith(MACHINE_KEY):
        return Machine(name=row.name)
    return read_targets(_where(owner, inventory), [row.name])[row.name]


def _where(owner: Run, inventory: Path | None) -> Path:
    """The inventory given, else the one that the run was started with."""
    return inventory or Path(owner.inventory or "inventory")
