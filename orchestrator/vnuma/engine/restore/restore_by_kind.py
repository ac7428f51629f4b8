"""The restore of a VM or a machine: the only module that knows both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from vnuma.engine.access.context import VmContext, refuse_other_kind, study_of
from vnuma.engine.access.inventory import stored_target
from vnuma.engine.access.machine_shell import PlayedShell
from vnuma.engine.access.target import TargetKind
from vnuma.engine.restore.restore import Choice, Restoration
from vnuma.engine.restore.restore_from_audit import AuditRestoration, MachineByHand
from vnuma.engine.restore.restore_machine import MachineRestoration
from vnuma.engine.restore.restore_vm import VmRestoration
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.workloads.shell import Shell


def _vm(context: VmContext, choice: Choice, say: Callable[[str], None], _shell: Shell | None) -> Restoration:
    one, target = context, context.target.as_vm()
    return VmRestoration(one.store, one.run, one.study, one.vm, one.home, choice, say, target=target)


def _machine(
    context: VmContext, choice: Choice, say: Callable[[str], None], shell: Shell | None
) -> Restoration:
    one, inventory = context, Path(context.run.inventory or "inventory")
    shell = shell or PlayedShell(one.vm.name, inventory)
    return MachineRestoration(one.store, one.run, one.study, one.vm, one.home, choice, say, shell=shell)


_BY_KIND = {TargetKind.VM: _vm, TargetKind.MACHINE: _machine}


def restoration_of(
    context: VmContext,
    *,
    choice: Choice = "refuse",
    say: Callable[[str], None] = lambda _: None,
    shell: Shell | None = None,
) -> Restoration:
    """The restore of the context's target. A machine without a `shell` is reached by a play of its own.

    Raises InputError for a VM that the inventory has as a machine, or the reverse.
    """
    refuse_other_kind(context.run, context.vm, context.target)
    return _BY_KIND[context.target.kind](context, choice, say, shell)


def restoration_from_store(
    store: Store,
    run: Run,
    vm: Vm,
    inventory: Path,
    *,
    choice: Choice = "refuse",
    say: Callable[[str], None] = lambda _: None,
) -> Restoration:
    """The restore of a VM or machine of a run as the store has it, reached by this inventory."""
    with store.read() as connection:
        study = study_of(connection, run)
    context = VmContext(store, run, study, vm, stored_target(inventory, vm.vm_key, vm.name))
    return restoration_of(context, choice=choice, say=say, shell=PlayedShell(vm.name, inventory))


BY_AUDIT: Mapping[TargetKind, Callable[..., AuditRestoration | MachineByHand]] = {
    TargetKind.VM: lambda store, one, target, *how: AuditRestoration(store, one, target.as_vm(), *how),
    TargetKind.MACHINE: lambda _, one, *_rest: MachineByHand(one),
}
"""The restore of a target that only the audit log knows, by its kind."""
