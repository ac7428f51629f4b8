"""Put back whatever a run left, be it a VM or a machine: one question for all who ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vnuma.domain.study import Study
from vnuma.engine.back import Choice
from vnuma.engine.linux.restore import restore_machine
from vnuma.engine.poweroff import PowerRules
from vnuma.engine.restore import restore
from vnuma.engine.restored import Restored
from vnuma.engine.target import AnyTarget, Machine
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm


def restore_any(
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
    """Put one back and give up its lease. Raises what `restore` and `restore_machine` raise."""
    if isinstance(target, Machine):
        return restore_machine(store, run, study, vm, home=home, choice=choice, say=say)
    rules = PowerRules.of(study)
    return restore(store, run, vm, target, home=home, choice=choice, rules=rules, say=say)
