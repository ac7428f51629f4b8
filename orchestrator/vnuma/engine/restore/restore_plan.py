"""To what a VM is put back, whether that is ours to do, and what it would change: decided, not done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vnuma.domain.vm.change import Edit, change_back
from vnuma.domain.vm.facts import VmFacts
from vnuma.domain.vm.setting import Power, Value
from vnuma.engine.access.connections import sql_server, vcenter
from vnuma.engine.access.target import Target
from vnuma.engine.lease.baseline import baseline_power, baseline_settings, foreign_mark
from vnuma.engine.lease.foreign_changes import conflict_words, conflicts, written
from vnuma.engine.lease.identity import find_own
from vnuma.engine.restore.restore_instance import parts_of
from vnuma.errors import RestoreConflict
from vnuma.store import attempts
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.vsphere import lease_mark, read
from vnuma.vsphere.connect import connect

Choice = Literal["refuse", "theirs", "baseline"]
"""What becomes of settings that somebody else changed: nothing is touched, they stay, or they go back too."""


@dataclass(frozen=True)
class RestorePlan:
    """What `restore` would change now, in the form in which it then says what it changed."""

    changes: tuple[Edit, ...] = ()
    powered_off: bool = False


def plan_of_restore(store: Store, run: Run, vm: Vm, target: Target, choice: Choice = "refuse") -> RestorePlan:
    """What `restore` would change now, without doing it. Raises RestoreConflict where that would.

    What SQL Server has cannot be asked while the VM is off: its edits then say so.
    """
    with connect(vcenter(target)) as session:
        facts = read.read_vm(session, find_own(session, vm))
    unmark = [] if facts.lease is None or foreign_mark(facts.lease, run) else [unmarking(run)]
    if vm.baseline is None or held_by_another_run(store, run, vm, facts):
        return RestorePlan(tuple(unmark))
    change = change_back(facts.settings, settings_to_restore(store, vm, facts, choice))
    server = sql_server(target) if facts.power is Power.ON else None
    guest = [part.plan(server) for part in parts_of(store, run, vm)]
    wanted = baseline_power(vm)
    power_edit = [] if wanted is facts.power else [Edit("power", str(facts.power), str(wanted))]
    cycle = change.needs_power_off or any(restart for _, restart in guest) or wanted is Power.OFF
    edits = [*change, *(edit for edit, _ in guest if edit), *power_edit, *unmark]
    return RestorePlan(tuple(edits), cycle and facts.power is not Power.OFF)


def settings_to_restore(store: Store, vm: Vm, facts: VmFacts, choice: Choice) -> dict[str, Value]:
    """The settings to which the VM goes back: the baseline's; with `theirs` others' where they changed some.

    Raises RestoreConflict when somebody else changed some and `choice` is `refuse`.
    """
    baseline = baseline_settings(vm)
    foreign = conflicts(baseline, _written(store, vm), facts.settings)
    if foreign and choice == "refuse":
        raise RestoreConflict(
            conflict_words(vm.name, foreign), fix=f"vnuma restore {vm.name} --theirs | --baseline"
        )
    return baseline | ({item.setting: item.now for item in foreign} if choice == "theirs" else {})


def held_by_another_run(store: Store, run: Run, vm: Vm, facts: VmFacts) -> bool:
    """Whether another run has marked the VM, and this one has not changed it: there is nothing to put back.

    Raises RestoreConflict when this run has changed it too.
    """
    mark = foreign_mark(facts.lease, run)
    if mark is None:
        return False
    if vm.at_baseline or not _written(store, vm):
        return True
    raise RestoreConflict(
        f"{vm.name} is under study by {mark['holder']}, run {mark['run']}, since {mark['since']}. "
        "Nothing was changed now.",
        fix=f"Let that run put it back, then: vnuma restore {vm.name}",
    )


def unmarking(run: Run) -> Edit:
    return Edit(lease_mark.LEASE_KEY, run.name, None)


def _written(store: Store, vm: Vm) -> dict[str, set[Value]]:
    with store.read() as connection:
        return written(attempts.changes_of_vm(connection, vm.id))
