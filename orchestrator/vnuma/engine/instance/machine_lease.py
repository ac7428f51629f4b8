"""Lease a machine to a run and release it. Lease and baseline exist only in the store."""

from __future__ import annotations

from vnuma.engine.instance.kernel import WHERE
from vnuma.engine.lease.context import holder
from vnuma.errors import StoreError
from vnuma.store import cells, facts, leases, vms
from vnuma.store.open import Store
from vnuma.store.rows import Run, Vm

KERNEL = "kernel"
"""A machine's baseline: all its kernel settings, including those that the study does not change."""


def take_machine(store: Store, run: Run, vm: Vm) -> int:
    """Lease the machine to the run and commit its baseline. Returns the fencing token. Raises VmHeld."""
    with store.read() as connection:
        known = facts.facts_of_run(connection, run.id, "machine")
    seen = {fact.key: fact.value for fact in known if fact.vm_id == vm.id}
    with store.write() as connection:
        token = leases.take_lease(connection, vm.vm_key, run.id, holder())
        cells.interrupt_attempts(connection, run.id, vm.id, token)
        if vm.baseline is None:
            kernel = {name: seen[name] for name in WHERE if seen.get(name) is not None}
            vms.save_baseline(connection, vm.id, token, {KERNEL: kernel})
    return token


def kernel_baseline(vm: Vm) -> dict[str, str]:
    """Kernel settings before the run, by name."""
    if not isinstance(vm.baseline, dict):
        raise StoreError(f"{vm.name} has no baseline in the store.", fix="Start the run again.")
    return dict(vm.baseline.get(KERNEL, {}))
