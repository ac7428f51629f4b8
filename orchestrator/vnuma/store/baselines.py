"""The baseline of each VM of a run: stored once, and whether the VM was restored to it."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from vnuma.errors import StoreError
from vnuma.store import tables
from vnuma.store.rows import RestoreOutcome, Run, Vm
from vnuma.store.runs import at_site, imported_ids
from vnuma.store.types import record_of, utc_now
from vnuma.store.vms import CORRECTED, VM_ROW, leased_vm

_vm = tables.vm.c


def save(conn: Connection, vm_id: int, token: int, baseline: object) -> None:
    """Store the configuration to restore. Raises StoreError for a second call, whatever its value.

    From now on the VM counts as away from its baseline until a restore is settled.
    """
    vm = leased_vm(conn, vm_id, token)
    if baseline is None:
        raise ValueError("a baseline must be the VM's configuration, not None")
    saved = conn.execute(
        update(tables.vm)
        .where(_vm.id == vm_id, _vm.baseline_json.is_(None))
        .values(baseline_json=baseline, baseline_at=utc_now())
    )
    if saved.rowcount == 0:
        raise StoreError(
            f"{vm.name} already has a baseline in this run, from {vm.baseline_at}; a baseline is never "
            "replaced.",
            fix="To study the VM as it is now, restore it first (vnuma restore), then start a new run.",
        )


def correct(conn: Connection, vm_id: int, token: int, baseline: object) -> None:
    """Store a baseline that was read again before the run's first write inside the guest. The first one
    stays.
    """
    vm = leased_vm(conn, vm_id, token)
    values = {"run_id": vm.run_id, "vm_id": vm_id, "scope": CORRECTED, "key": CORRECTED, "at": utc_now()}
    conn.execute(insert(tables.fact).values(value_json=baseline, **values))


def mark_changing(conn: Connection, vm_id: int, token: int) -> None:
    """Record in advance that the VM leaves its baseline, also again after a stop and a resume.

    Raises StoreError without a baseline to restore.
    """
    leave(conn, leased_vm(conn, vm_id, token))


def leave(conn: Connection, vm: Vm) -> None:
    """`mark_changing` for a VM from `leased_vm`."""
    if vm.baseline_at is None:
        raise StoreError(
            f"{vm.name} has no baseline in this run yet, so it may not be changed.",
            fix="Start the study with: vnuma run STUDY",
        )
    if vm.restored_at is not None:
        _set(conn, vm.id, restored_at=None, restore_outcome=None, restore_detail_json=None)


def set_restored(
    conn: Connection, vm_id: int, token: int, outcome: RestoreOutcome, detail: object = None
) -> None:
    """Store a restore's outcome; only a settled one marks the VM as at its baseline."""
    leased_vm(conn, vm_id, token)
    restored_at = utc_now() if outcome.settled else None
    _set(conn, vm_id, restored_at=restored_at, restore_outcome=outcome, restore_detail_json=detail)


def unrestored(conn: Connection) -> list[tuple[Vm, Run]]:
    """VMs to restore or release, each with its run, or the site's part of it.

    Those with a baseline and no settled restore since come before those that are only leased. Running runs
    are included, imported ones are not.
    """
    lease = tables.lease.c
    leased = select(lease.token).where(lease.vm_key == _vm.vm_key, lease.run_id == _vm.run_id).exists()
    away = _vm.baseline_at.is_not(None) & _vm.restored_at.is_(None)
    own = VM_ROW.where(away | leased, _vm.run_id.not_in(imported_ids())).order_by(_vm.run_id, _vm.id)
    vms = (record_of(Vm, row) for row in conn.execute(own).mappings())
    found = sorted(vms, key=lambda vm: vm.at_baseline)
    wanted = select(tables.run).where(tables.run.c.id.in_({vm.run_id for vm in found}))
    runs = {row.id: record_of(Run, row._mapping) for row in conn.execute(wanted)}
    return [(vm, at_site(conn, runs[vm.run_id], vm.node)) for vm in found]


def studied(conn: Connection) -> set[str]:
    """Inventory names of the VMs in runs of this store; imported runs do not count."""
    return set(conn.execute(select(_vm.name).where(_vm.run_id.not_in(imported_ids()))).scalars())


def _set(conn: Connection, vm_id: int, **values: object) -> None:
    conn.execute(update(tables.vm).where(_vm.id == vm_id).values(**values))
