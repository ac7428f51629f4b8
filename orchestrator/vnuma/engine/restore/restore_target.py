"""The restore of whatever a run holds, be it a VM or a machine: the one place that knows of both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vnuma.domain.study.study import Study
from vnuma.engine.access.machine_shell import PlayedShell
from vnuma.engine.access.target import AnyTarget, Machine
from vnuma.engine.lease.context import home_folder, refuse_other_kind
from vnuma.engine.restore.restoration import Choice, Restoration
from vnuma.engine.restore.restore_machine import MachineRestoration
from vnuma.engine.restore.restore_vm import VmRestoration
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.workloads.shell import Shell


def restoration_of(
    store: Store,
    run: Run,
    study: Study,
    vm: Vm,
    target: AnyTarget,
    *,
    choice: Choice = "refuse",
    say: Callable[[str], None] = lambda _: None,
    shell: Shell | None = None,
) -> Restoration:
    """The restore of `target`. A machine without a `shell` is reached by a play of its own.

    Raises InputError for a VM that the inventory has as a machine, or the reverse.
    """
    refuse_other_kind(run, vm, target)
    home = home_folder()
    if isinstance(target, Machine):
        reached = shell or PlayedShell(vm.name, Path(run.inventory or "inventory"))
        return MachineRestoration(store, run, study, vm, home, choice, say, shell=reached)
    return VmRestoration(store, run, study, vm, home, choice, say, target=target.in_vcenter())
