"""Restore whatever a run left, be it a VM or a machine: one question for all who ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vnuma.domain.study.study import Study
from vnuma.engine.access.target import AnyTarget, Machine
from vnuma.engine.restore.restoration import Choice, Restored, possibly_changed
from vnuma.engine.restore.restore_machine import restore_machine
from vnuma.engine.restore.restore_vm import VmRestoration
from vnuma.errors import VnumaError
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm


def restore_target(
    store: Store,
    run: Run,
    study: Study,
    vm: Vm,
    target: AnyTarget,
    *,
    home: Path,
    choice: Choice = "refuse",
    say: Callable[[str], None] = lambda _: None,
) -> Restored:
    """Restore one and give up its lease. Raises what `Restoration.restore` raises.

    Whatever else goes wrong is NotAtBaseline too, with the bug in it: it must not keep the next VM from
    being restored. This is the one place where any exception is caught for that.
    """
    try:
        if isinstance(target, Machine):
            return restore_machine(store, run, study, vm, home=home, choice=choice, say=say)
        return VmRestoration(store, run, study, vm, home, choice, say, target=target).restore()
    except VnumaError:
        raise
    except Exception as error:
        raise possibly_changed(vm.name, error) from error
