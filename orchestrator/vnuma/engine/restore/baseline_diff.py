"""Stored baselines: the state a VM is restored to, and how it differs from the present one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vnuma.domain.vm.setting import Value
from vnuma.engine.instance import kernel
from vnuma.engine.instance.kernel import KERNEL, kernel_baseline
from vnuma.engine.lease.baseline_document import baseline_power, baseline_settings
from vnuma.engine.restore.restoration import restoration_from_store
from vnuma.engine.restore.restore import Difference
from vnuma.errors import InputError
from vnuma.store import runs, vms
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm


@dataclass(frozen=True)
class Baseline:
    """A VM's configuration before a run: settings by name, its power state, when it was taken."""

    vm: str
    path: str
    run: str
    taken_at: datetime
    at_baseline: bool
    """Whether it was restored since, or never changed."""
    power: str | None
    """None for a machine, which stays on."""
    settings: dict[str, Value]


def stored_baseline(store: Store, name: str, run: str | None) -> Baseline:
    """The baseline of that VM in `run`, or else in its newest run that has one.

    An imported run counts only if named. Raises InputError when there is no baseline.
    """
    owner, vm = _find(store, name, run)
    taken = vm.baseline_at
    if taken is None:
        raise InputError(f"{name} has no baseline in {owner.name}.", fix="vnuma status lists runs and VMs.")
    return Baseline(name, vm.path, owner.name, taken, vm.at_baseline, *_stored(vm))


def differences_now(
    store: Store, name: str, run: str | None, inventory: Path | None
) -> tuple[Baseline, list[Difference]]:
    """How the VM differs from its baseline now. Changes nothing. Raises as `stored_baseline` does."""
    baseline = stored_baseline(store, name, run)
    owner, vm = _find(store, name, baseline.run)
    with store.read() as connection:
        runs.refuse_imported(connection, owner.id)
    where = inventory or Path(owner.inventory or "inventory")
    return baseline, restoration_from_store(store, owner, vm, where).differences()


def _stored(vm: Vm) -> tuple[str | None, dict[str, Value]]:
    """Power state and settings; a machine has only kernel settings."""
    if isinstance(vm.baseline, dict) and KERNEL in vm.baseline:
        return None, {kernel.key(name): value for name, value in kernel_baseline(vm).items()}
    return str(baseline_power(vm)), baseline_settings(vm)


def _find(store: Store, name: str, run: str | None) -> tuple[Run, Vm]:
    with store.read() as connection:
        imported = set(connection.scalars(runs.imported_ids()))
        ours = [one for one in reversed(runs.list_runs(connection)) if one.id not in imported]
        for owner in [runs.get_run(connection, run)] if run else ours:
            for vm in vms.vms_of_run(connection, owner.id):
                if vm.name == name and vm.baseline is not None:
                    return owner, vm
    raise InputError(
        f"The store has no baseline of {name}" + (f" in {run}." if run else "."),
        fix="A run takes it before its first change; vnuma status lists runs and VMs.",
    )
