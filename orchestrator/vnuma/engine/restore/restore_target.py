"""The restore of a VM or a machine: the only module that knows both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from vnuma.domain.study.study import Study
from vnuma.engine.access.machine_shell import PlayedShell
from vnuma.engine.access.places import home_folder
from vnuma.engine.access.target import AnyTarget, Kind
from vnuma.engine.lease.context import refuse_other_kind
from vnuma.engine.restore.restoration import Choice, Restoration
from vnuma.engine.restore.restore_from_audit import AuditRestoration, MachineByHand, Unanswered
from vnuma.engine.restore.restore_machine import MachineRestoration
from vnuma.engine.restore.restore_vm import VmRestoration
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.workloads.shell import Shell

Common = tuple[Store, Run, Study, Vm, Path, Choice, Callable[[str], None]]
"""The fields of every restoration, in the order of `Restoration`."""


class Maker(Protocol):
    """Makes the restorations of one kind of target."""

    def of_run(self, common: Common, target: AnyTarget, shell: Shell | None, /) -> Restoration:
        """The restore of a run's target."""

    def by_audit(
        self, store: Store, one: Unanswered, target: AnyTarget, choice: Choice, say: Callable[[str], None], /
    ) -> AuditRestoration | MachineByHand:
        """The restore of a target that only the audit log knows."""


class _Vms:
    def of_run(self, common: Common, target: AnyTarget, _shell: Shell | None) -> Restoration:
        return VmRestoration(*common, target=target.in_vcenter())

    def by_audit(
        self, store: Store, one: Unanswered, target: AnyTarget, choice: Choice, say: Callable[[str], None]
    ) -> AuditRestoration:
        return AuditRestoration(store, one, target.in_vcenter(), choice, say)


class _Machines:
    def of_run(self, common: Common, _target: AnyTarget, shell: Shell | None) -> Restoration:
        _, run, _, vm, *_ = common
        reached = shell or PlayedShell(vm.name, Path(run.inventory or "inventory"))
        return MachineRestoration(*common, shell=reached)

    def by_audit(
        self, _store: Store, one: Unanswered, _target: AnyTarget, _choice: Choice, _say: Callable[[str], None]
    ) -> MachineByHand:
        return MachineByHand(one)


_BY_KIND: Mapping[Kind, Maker] = {Kind.VM: _Vms(), Kind.MACHINE: _Machines()}


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
    return _BY_KIND[target.kind].of_run((store, run, study, vm, home_folder(), choice, say), target, shell)


def restoration_by_audit(
    store: Store, one: Unanswered, target: AnyTarget, choice: Choice, say: Callable[[str], None]
) -> AuditRestoration | MachineByHand:
    """The restore of a `target` that only the audit log knows."""
    return _BY_KIND[target.kind].by_audit(store, one, target, choice, say)
