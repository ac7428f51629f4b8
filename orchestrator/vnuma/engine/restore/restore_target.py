"""Put back whatever a run left, be it a VM or a machine: one question for all who ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vnuma.domain.study.study import Study
from vnuma.engine.access.target import AnyTarget, Machine
from vnuma.engine.cell.guest_shutdown import PowerRules
from vnuma.engine.restore.restore_machine import restore_machine
from vnuma.engine.restore.restore_outcome import Restored, possibly_changed
from vnuma.engine.restore.restore_plan import Choice
from vnuma.engine.restore.restore_vm import restore
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
    """Put one back and give up its lease. Raises what `restore` and `restore_machine` raise.

    Whatever else goes wrong is NotAtBaseline too, with the bug in it: it must not keep the next VM from
    being put back. This is the one place where any exception is caught for that.
    """
    try:
        if isinstance(target, Machine):
            return restore_machine(store, run, study, vm, home=home, choice=choice, say=say)
        rules = PowerRules.of(study)
        return restore(store, run, vm, target, home=home, choice=choice, rules=rules, say=say)
    except VnumaError:
        raise
    except Exception as error:
        raise possibly_changed(vm.name, error) from error
