"""Stored baselines: what a VM is put back to, and how it differs from that now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vnuma.domain.study.study_file import parse_study
from vnuma.domain.vm.change import change_back
from vnuma.domain.vm.setting import Value
from vnuma.engine.access.connections import vcenter
from vnuma.engine.access.inventory import read_targets
from vnuma.engine.access.machine_shell import PlayedShell
from vnuma.engine.access.target import Kind
from vnuma.engine.instance import kernel
from vnuma.engine.instance.machine_lease import kernel_baseline
from vnuma.engine.lease.baseline import baseline_power, baseline_settings
from vnuma.engine.lease.foreign_changes import conflicts, written
from vnuma.engine.lease.identity import find_own
from vnuma.errors import InputError
from vnuma.store import attempts, runs, vms
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm
from vnuma.vsphere import read
from vnuma.vsphere.connect import connect


@dataclass(frozen=True)
class Baseline:
    """A VM's configuration before a run: settings by name, its power state, when it was taken."""

    vm: str
    path: str
    run: str
    taken_at: datetime
    at_baseline: bool
    """Whether it was put back since, or never changed."""
    power: str | None
    """None for a machine, which stays on."""
    settings: dict[str, Value]


@dataclass(frozen=True)
class Difference:
    """A setting that is not as the baseline has it, and by whom: "us" or "somebody else"."""

    setting: str
    baseline: Value
    now: Value
    by: str


def stored_baseline(store: Store, name: str, run: str | None) -> Baseline:
    """The baseline of that VM in a run; in the newest run that has one if none is named.

    An imported run's is shown only when that run is named. Raises InputError when there is none.
    """
    owner, vm = _find(store, name, run)
    taken = vm.baseline_at
    if taken is None:
        raise InputError(f"{name} has no baseline in {owner.name}.", fix="vnuma status lists runs and VMs.")
    power, settings = _STORED[Kind.of(vm.vm_key)](vm)
    return Baseline(name, vm.path, owner.name, taken, vm.at_baseline, power, settings)


def differences_now(
    store: Store, name: str, run: str | None, inventory: Path | None
) -> tuple[Baseline, list[Difference]]:
    """How the VM differs from its baseline now. Changes nothing. Raises as `stored_baseline` does."""
    baseline = stored_baseline(store, name, run)
    owner, vm = _find(store, name, baseline.run)
    with store.read() as connection:
        runs.refuse_imported(connection, owner.id)
    where = inventory or Path(owner.inventory or "inventory")
    return baseline, _NOW[Kind.of(vm.vm_key)](store, owner, vm, baseline, where)


def _stored_of_vm(vm: Vm) -> tuple[str | None, dict[str, Value]]:
    return str(baseline_power(vm)), baseline_settings(vm)


def _stored_of_machine(vm: Vm) -> tuple[str | None, dict[str, Value]]:
    return None, {kernel.key(name): value for name, value in kernel_baseline(vm).items()}


_STORED = {Kind.VM: _stored_of_vm, Kind.MACHINE: _stored_of_machine}


def _of_vm(store: Store, _owner: Run, vm: Vm, baseline: Baseline, inventory: Path) -> list[Difference]:
    with connect(vcenter(read_targets(inventory, [vm.name])[vm.name])) as session:
        facts = read.read_vm(session, find_own(session, vm))
    with store.read() as connection:
        ours = written(attempts.changes_of_vm(connection, vm.id))
    foreign = {item.setting for item in conflicts(baseline.settings, ours, facts.settings)}
    found = [
        Difference(
            edit.setting, edit.after, edit.before, "somebody else" if edit.setting in foreign else "us"
        )
        for edit in change_back(facts.settings, baseline.settings)
    ]
    if str(facts.power) != baseline.power:
        found.append(Difference("power", baseline.power, str(facts.power), "somebody else or us"))
    return found


def _of_machine(store: Store, owner: Run, vm: Vm, _: Baseline, inventory: Path) -> list[Difference]:
    """A machine's kernel settings that differ now; ours are those with the values that the study holds."""
    with store.read() as connection:
        study = parse_study(runs.get_study(connection, owner.study_id).yaml, f"study of {owner.name}")
    before, held = kernel_baseline(vm), study.workload.kernel_settings()
    now = kernel.read(PlayedShell(vm.name, inventory), before)
    return [
        Difference(
            kernel.key(name),
            value,
            now.get(name),
            "us" if name in held and now.get(name) == held[name] else "somebody else",
        )
        for name, value in before.items()
        if now.get(name) != value
    ]


_NOW = {Kind.VM: _of_vm, Kind.MACHINE: _of_machine}


def _find(store: Store, name: str, run: str | None) -> tuple[Run, Vm]:
    with store.read() as connection:
        imported = set(connection.scalars(runs.imported_ids()))
        ours = [one for one in reversed(runs.list_runs(connection)) if one.id not in imported]
        for owner in [runs.get_run(connection, run)] if run else ours:
            for vm in _named(vms.vms_of_run(connection, owner.id), name):
                if vm.baseline is not None:
                    return owner, vm
    raise InputError(
        f"The store has no baseline of {name}" + (f" in {run}." if run else "."),
        fix="A run takes it before its first change; vnuma status lists runs and VMs.",
    )


def _named(rows: tuple[Vm, ...], name: str) -> Iterator[Vm]:
    return (row for row in rows if row.name == name)
