"""To what a machine's kernel settings go back, and whether that is ours to do: decided, not done."""

from __future__ import annotations

from vnuma.domain.study.study import Study
from vnuma.domain.vm.change import Edit
from vnuma.engine.instance import kernel
from vnuma.engine.instance.machine_lease import kernel_baseline
from vnuma.engine.lease.foreign_changes import conflict_words
from vnuma.engine.restore.restoration import Choice
from vnuma.errors import RestoreConflict
from vnuma.store.rows import Vm
from vnuma.workloads.shell import Shell


def held_baseline(study: Study, vm: Vm) -> dict[str, str]:
    """The settings that the study holds during a pass, as they were before. The others are not ours."""
    held = study.workload.kernel_settings()
    return {name: value for name, value in kernel_baseline(vm).items() if name in held}


def edits_back(study: Study, vm: Vm, shell: Shell, choice: Choice) -> dict[str, Edit]:
    """What has to be set so that they are as before, by the setting's own name.

    Raises RestoreConflict when somebody else changed one and `choice` is `refuse`; with `theirs` it stays.
    """
    before = held_baseline(study, vm)
    now = kernel.read(shell, before) if before else {}
    foreign = kernel.foreign_changes(before, study.workload.kernel_settings(), now)
    if foreign and choice == "refuse":
        raise RestoreConflict(
            conflict_words(vm.name, foreign), fix=f"vnuma restore {vm.name} --theirs | --baseline"
        )
    theirs = {item.setting for item in foreign} if choice == "theirs" else set()
    return {
        name: Edit(kernel.key(name), now.get(name), value)
        for name, value in before.items()
        if now.get(name) != value and kernel.key(name) not in theirs
    }
