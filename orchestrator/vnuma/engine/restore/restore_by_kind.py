"""The restore of a VM or a machine: the only module that knows both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypedDict

from vnuma.domain.study.study import Study
from vnuma.engine.access.machine_shell import PlayedShell
from vnuma.engine.access.target import AnyTarget, Kind
from vnuma.engine.lease.context import VmContext, refuse_other_kind
from vnuma.engine.restore.restore import Choice, Restoration
from vnuma.engine.restore.restore_from_audit import AuditRestoration, MachineByHand, Unanswered
from vnuma.engine.restore.restore_machine import MachineRestoration
from vnuma.engine.restore.restore_vm import VmRestoration
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.workloads.shell import Shell


class Common(TypedDict):
    """The fields of every `Restoration`."""

    store: Store
    run: Run
    study: Study
    vm: Vm
    home: Path
    choice: Choice
    say: Callable[[str], None]


def _vm(common: Common, target: AnyTarget, _shell: Shell | None) -> Restoration:
    return VmRestoration(**common, target=target.as_vm())


def _machine(common: Common, _target: AnyTarget, shell: Shell | None) -> Restoration:
    inventory = Path(common["run"].inventory or "inventory")
    return MachineRestoration(**common, shell=shell or PlayedShell(common["vm"].name, inventory))


_BY_KIND = {Kind.VM: _vm, Kind.MACHINE: _machine}


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
    common = Common(
        store=context.store,
        run=context.run,
        study=context.study,
        vm=context.vm,
        home=context.home,
        choice=choice,
        say=say,
    )
    return _BY_KIND[context.target.kind](common, context.target, shell)


def _vm_by_audit(
    store: Store, one: Unanswered, target: AnyTarget, choice: Choice, say: Callable[[str], None]
) -> AuditRestoration:
    return AuditRestoration(store, one, target.as_vm(), choice, say)


def _machine_by_audit(_store: Store, one: Unanswered, *_: object) -> MachineByHand:
    return MachineByHand(one)


BY_AUDIT: Mapping[Kind, Callable[..., AuditRestoration | MachineByHand]] = {
    Kind.VM: _vm_by_audit,
    Kind.MACHINE: _machine_by_audit,
}
"""The restore of a target that only the audit log knows, by its kind."""
