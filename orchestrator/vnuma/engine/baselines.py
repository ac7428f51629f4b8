"""Stored baselines: what a VM is put back to, and how it differs from that now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vnuma.domain.change import change_back
from vnuma.domain.setting import Value
from vnuma.engine.baseline import baseline_power, baseline_settings
from vnuma.engine.connections import vcenter
from vnuma.engine.identity import find_own
from vnuma.engine.inventory import read_targets
from vnuma.engine.three_way import conflicts, written
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
    power: str
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

    Raises InputError when there is none.
    """
    owner, vm = _find(store, name, run)
    taken = vm.baseline_at
    if taken is None:
        raise InputError(f"{name} has no baseline in {owner.name}.", fix="vnuma status lists runs and VMs.")
    return Baseline(
        name, vm.path, owner.name, taken, vm.at_baseline, str(baseline_power(vm)), baseline_settings(vm)
    )


def differences_now(
    store: Store, name: str, run: str | None, inventory: Path | None
) -> tuple[Baseline, list[Difference]]:
    """How the VM differs from its baseline now. Changes nothing. Raises as `stored_baseline` does."""
    baseline = stored_baseline(store, name, run)
    owner, vm = _find(store, name, baseline.run)
    where = inventory or Path(owner.inventory or "inventory")
    with connect(vcenter(read_targets(where, [name])[name])) as session:
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
    return baseline, found


def _find(store: Store, name: str, run: str | None) -> tuple[Run, Vm]:
    with store.read() as connection:
        wanted = [runs.get_run(connection, run)] if run else list(reversed(runs.list_runs(connection)))
        for owner in wanted:
            for vm in _named(vms.vms_of_run(connection, owner.id), name):
                if vm.baseline is not None:
                    return owner, vm
    raise InputError(
        f"The store has no baseline of {name}" + (f" in {run}." if run else "."),
        fix="A run takes it before its first change; vnuma status lists runs and VMs.",
    )


def _named(rows: tuple[Vm, ...], name: str) -> Iterator[Vm]:
    return (row for row in rows if row.name == name)
