"""Put a machine back: kernel settings as they were, our files removed, the lease given up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vnuma.domain.change import Edit
from vnuma.domain.machine import machine_facts
from vnuma.domain.setting import Power
from vnuma.domain.study import Study
from vnuma.engine.audit import Journal
from vnuma.engine.context import holder
from vnuma.engine.linux import kernel
from vnuma.engine.linux.lease import kernel_baseline
from vnuma.engine.linux.shell import PlayedShell
from vnuma.engine.locking import vm_lock
from vnuma.engine.restored import Restored
from vnuma.errors import MachineUnreachable, MeasurementFailed, NotAtBaseline
from vnuma.store import cells, leases, vms
from vnuma.store.open import Store
from vnuma.store.rows import RestoreOutcome, Run, Vm
from vnuma.workloads.machine_question import machine_question
from vnuma.workloads.registry import machine_workload_named
from vnuma.workloads.shell import Shell, require


def restore_machine(
    store: Store,
    run: Run,
    study: Study,
    vm: Vm,
    *,
    home: Path,
    shell: Shell | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Restored:
    """Put one machine back and give up its lease. Safe to repeat. Without a shell it plays one of its own.

    Raises NotAtBaseline when that could not be done: the lease is kept.
    """
    reached = shell or PlayedShell(vm.name, Path(run.inventory or "inventory"))
    with store.write() as connection:
        token = leases.raise_token(connection, vm.vm_key, run.id, holder())
        cells.interrupt_attempts(connection, run.id, vm.id, token)
    journal = Journal(store, vm.vm_key, vm.name, run, lost=lambda _: None)
    try:
        with vm_lock(home, vm.vm_key, vm.name, say=say):
            changes, checked = _put_back(study, vm, reached, journal)
    except (MachineUnreachable, MeasurementFailed) as error:
        with store.write() as connection:
            vms.set_restored(connection, vm.id, token, RestoreOutcome.FAILED, {"words": error.what})
        raise NotAtBaseline(
            f"{vm.name} may not be at its baseline: {error.what}",
            fix=f"Put it right, then: vnuma restore {vm.name}",
        ) from error
    outcome = Restored(vm.name, checked, checked, Power.ON, changes)
    with store.write() as connection:
        vms.set_restored(connection, vm.id, token, RestoreOutcome.RESTORED, {"words": outcome.words})
        leases.release_lease(connection, vm.vm_key, token)
    return outcome


def _put_back(study: Study, vm: Vm, shell: Shell, journal: Journal) -> tuple[tuple[Edit, ...], int]:
    """Kernel settings that had to be changed, and how many read as in the baseline."""
    if vm.baseline is None:
        return (), 0
    before = kernel_baseline(vm)
    machine_workload_named(study.workload.name).remove(shell, study.workload)
    question = machine_question(getattr(study.workload, "folder", "/var/tmp"))
    now = kernel.shown(machine_facts(require(shell, question, f"{vm.name}: looking at its settings")))
    wrong = {name: value for name, value in before.items() if now.get(name) != value}
    kernel.switch(shell, wrong, now, journal)
    return tuple(Edit(kernel.key(name), now.get(name), value) for name, value in wrong.items()), len(before)
