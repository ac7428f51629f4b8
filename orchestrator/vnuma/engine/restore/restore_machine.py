"""Put a machine back: kernel settings as they were, our files removed, the lease given up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vnuma.domain.study.study import Study
from vnuma.engine.access.machine_shell import PlayedShell
from vnuma.engine.instance import kernel
from vnuma.engine.lease.audit import Journal
from vnuma.engine.lease.locking import StillLocked, vm_lock
from vnuma.engine.restore.machine_restore_plan import edits_back, held_baseline
from vnuma.engine.restore.restoration import (
    Choice,
    Restored,
    advance_token,
    give_up,
    possibly_changed,
    record,
)
from vnuma.errors import MachineUnreachable, MeasurementFailed, RestoreConflict, StoreError
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.store.states import RestoreOutcome
from vnuma.workloads.registry import machine_workload_named
from vnuma.workloads.shell import Shell


def restore_machine(
    store: Store,
    run: Run,
    study: Study,
    vm: Vm,
    *,
    home: Path,
    shell: Shell | None = None,
    choice: Choice = "refuse",
    say: Callable[[str], None] = lambda _: None,
) -> Restored:
    """Put one machine back and give up its lease. Safe to repeat. Without a shell it plays one of its own.

    Raises RestoreConflict when somebody else changed a setting that the study holds and `choice` is
    `refuse`, NotAtBaseline when it could not be put back: the lease is kept in both. A store that cannot
    be written does not keep it from being put back: StoreError then says that it was.
    """
    reached = shell or PlayedShell(vm.name, Path(run.inventory or "inventory"))
    try:
        token, broken = advance_token(store, run, vm)
    except StoreError as error:
        raise possibly_changed(vm.name, error) from error
    journal = Journal(store, vm.vm_key, vm.name, run, lost=lambda _: None)
    try:
        with vm_lock(home, vm.vm_key, vm.name, say=say):
            done = _put_back(study, vm, reached, journal, choice)
    except RestoreConflict as error:
        record(store, vm, token, RestoreOutcome.CONFLICT, error.what)
        raise
    except (MachineUnreachable, MeasurementFailed, StillLocked, StoreError, OSError) as error:
        away = possibly_changed(vm.name, error)
        record(store, vm, token, RestoreOutcome.FAILED, away.what)
        raise away from error
    theirs = choice == "theirs" and done.equal < done.settings
    give_up(
        store, vm, token, RestoreOutcome.THEIRS if theirs else RestoreOutcome.RESTORED, done.words, broken
    )
    return done


def _put_back(study: Study, vm: Vm, shell: Shell, journal: Journal, choice: Choice) -> Restored:
    """Files removed first: what fills the machine's memory goes whatever becomes of its settings."""
    if vm.baseline is None:
        return Restored(vm.name, 0, 0, None)
    machine_workload_named(study.workload.name).remove(shell, study.workload)
    edits = edits_back(study, vm, shell, choice)
    kernel.switch(
        shell,
        {name: str(edit.after) for name, edit in edits.items()},
        {name: str(edit.before) for name, edit in edits.items()},
        journal,
    )
    before = held_baseline(study, vm)
    now = kernel.read(shell, before) if before else {}
    equal = sum(now.get(name) == value for name, value in before.items())
    return Restored(vm.name, len(before), equal, None, tuple(edits.values()))
