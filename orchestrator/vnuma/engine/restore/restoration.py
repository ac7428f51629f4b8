"""The restore of a target: which parts it has, and how they are reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from vnuma.engine.access.context import VmContext, refuse_unshaped, study_of
from vnuma.engine.access.guest_shell import PlayedShell
from vnuma.engine.access.inventory import stored_target
from vnuma.engine.cell.shell_guest import proven_uuid
from vnuma.engine.restore.restore import Choice, PartRestore, Restoration
from vnuma.engine.restore.restore_guest import GuestRestoration
from vnuma.engine.restore.restore_vm import VmRestoration
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm

Say = Callable[[str], None]


def restoration_of(
    context: VmContext,
    *,
    choice: Choice = "refuse",
    say: Say = lambda _: None,
) -> Restoration:
    """The restore of the context's target. Raises InputError as `refuse_unshaped`."""
    refuse_unshaped(context.run, context.vm, context.target)
    parts = tuple(_parts(context, choice, say))
    return Restoration(context.store, context.run, context.study, context.vm, choice, parts)


def _parts(context: VmContext, choice: Choice, say: Say) -> Iterator[PartRestore]:
    """The VM first: a guest is reached best in the shape and power state that it had."""
    if context.target.vcenter:
        yield VmRestoration(context, choice, say)
    if "shell" in context.study.workload.needs:
        uuid = proven_uuid(context)
        if uuid or context.target.vcenter is None:
            yield GuestRestoration(context, choice, say, uuid)


def restoration_from_store(
    store: Store,
    run: Run,
    vm: Vm,
    inventory: Path,
    *,
    choice: Choice = "refuse",
    say: Say = lambda _: None,
) -> Restoration:
    """The restore of a target of a run as the store has it, reached by this inventory."""
    with store.read() as connection:
        study = study_of(connection, run)
    target, shell = stored_target(inventory, vm.vm_key, vm.name), PlayedShell(vm.name, inventory)
    context = VmContext(store, run, study, vm, target, task_shell=shell)
    return restoration_of(context, choice=choice, say=say)
