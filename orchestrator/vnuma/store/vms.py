"""The VMs of a run: identity, baseline, and whether they were restored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from vnuma.errors import StoreError
from vnuma.store import tables
from vnuma.store.leases import is_kept, kept, lease_lost
from vnuma.store.rows import Run, Study, Vm
from vnuma.store.runs import at_site, imported_ids, is_imported, run_from, run_of
from vnuma.store.states import RestoreOutcome
from vnuma.store.types import utc_now

_vm = tables.vm.c
_fact = tables.fact.c

_CORRECTED = "baseline_corrected"
"""Scope of the fact with a baseline that was read again; the vm table's own is written once."""

_COLUMNS = (
    *tables.vm.c,
    select(_fact.value_json)
    .where(_fact.run_id == _vm.run_id, _fact.vm_id == _vm.id, _fact.scope == _CORRECTED)
    .order_by(_fact.id.desc())
    .limit(1)
    .scalar_subquery()
    .label(_CORRECTED),
)
_ROW = select(*_COLUMNS)


def add_vm(
    conn: Connection,
    run_id: int,
    *,
    vm_key: str,
    name: str,
    path: str,
    esxi_host: str,
    node: str | None = None,
) -> Vm:
    """Add a VM to a run. `vm_key` identifies it across runs, `esxi_host` is the machine it loads.

    `node` is the mesh node that works on it; None for the controller.
    """
    row = conn.execute(
        insert(tables.vm)
        .values(run_id=run_id, vm_key=vm_key, name=name, path=path, esxi_host=esxi_host, node=node)
        .returning(*tables.vm.c)
    ).one()
    return vm_of(row)


def get_vm(conn: Connection, vm_id: int) -> Vm:
    """The VM with that id. Raises StoreError if there is none."""
    row = conn.execute(_ROW.where(_vm.id == vm_id)).one_or_none()
    if row is None:
        raise StoreError(f"The store has no VM {vm_id}.", fix="vnuma status lists runs and VMs.")
    return vm_of(row)


def own_vm(conn: Connection, vm_id: int, token: int) -> Vm:
    """The same, if `token` is its current one, and stays so during this transaction. Raises LeaseLost too."""
    row = conn.execute(kept(_ROW.where(_vm.id == vm_id))).one_or_none()
    if row is None:
        raise lease_lost(get_vm(conn, vm_id).name)
    if not is_kept(row, token):
        raise lease_lost(row.name)
    return vm_of(row)


def vms_of_run(conn: Connection, run_id: int) -> tuple[Vm, ...]:
    """The run's VMs in the order of adding."""
    query = _ROW.where(_vm.run_id == run_id).order_by(_vm.id)
    return tuple(vm_of(row) for row in conn.execute(query))


def vm_named(conn: Connection, run_id: int, name: str) -> Vm | None:
    """The run's VM of that name, or None."""
    query = _ROW.where(_vm.run_id == run_id, _vm.name == name).order_by(_vm.id.desc()).limit(1)
    row = conn.execute(query).one_or_none()
    return None if row is None else vm_of(row)


def vm_at_work(conn: Connection, run_name: str, name: str) -> tuple[Run, Study, Vm] | None:
    """A run, its study and its VM of that name in one SELECT; the run as `at_site` gives it for this VM.

    None where there is no such run or VM, or the run was imported.
    """
    run, study, site = tables.run.c, tables.study.c, tables.site.c
    part = (site.supervisor_pid, site.supervisor_host, site.heartbeat_at)
    columns = (site.node, *part, *run, *study, *_COLUMNS)
    row = conn.execute(
        select(*columns)
        .select_from(tables.run)
        .join(tables.study, study.id == run.study_id)
        .join(tables.vm, _vm.run_id == run.id)
        .outerjoin(tables.site, (site.run_id == run.id) & (site.node == _vm.node))
        .where(run.name == run_name, _vm.name == name, ~is_imported())
        .order_by(_vm.id.desc())
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    node, *values = row
    parts = [
        {column.name: values.pop(0) for column in of} for of in (part, tuple(run), tuple(study), _COLUMNS)
    ]
    whole = run_from(parts[1])
    return replace(whole, site=node, **parts[0]) if node else whole, Study(**parts[2]), _vm_from(parts[3])


def save_baseline(conn: Connection, vm_id: int, token: int, baseline: object) -> None:
    """Store the configuration to restore. Raises StoreError for a second call, whatever its value.

    From now on the VM counts as away from its baseline until a restore is settled.
    """
    vm = own_vm(conn, vm_id, token)
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


def correct_baseline(conn: Connection, vm_id: int, token: int, baseline: object) -> None:
    """Store a baseline that was read again before the run's first write inside the guest. The first one
    stays.
    """
    vm = own_vm(conn, vm_id, token)
    values = {"run_id": vm.run_id, "vm_id": vm_id, "scope": _CORRECTED, "key": _CORRECTED, "at": utc_now()}
    conn.execute(insert(tables.fact).values(value_json=baseline, **values))


def mark_changing(conn: Connection, vm_id: int, token: int) -> None:
    """Record in advance that the VM leaves its baseline, also again after a stop and a resume.

    Raises StoreError without a baseline to restore.
    """
    leave_baseline(conn, own_vm(conn, vm_id, token))


def leave_baseline(conn: Connection, vm: Vm) -> None:
    """The same for a VM from `own_vm`."""
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
    own_vm(conn, vm_id, token)
    restored_at = utc_now() if outcome.settled else None
    _set(conn, vm_id, restored_at=restored_at, restore_outcome=outcome, restore_detail_json=detail)


def unrestored_vms(conn: Connection) -> list[tuple[Vm, Run]]:
    """VMs to restore or release, each with its run, or the site's part of it.

    Those with a baseline and no settled restore since come before those that are only leased. Running runs
    are included, imported ones are not.
    """
    lease = tables.lease.c
    leased = select(lease.token).where(lease.vm_key == _vm.vm_key, lease.run_id == _vm.run_id).exists()
    away = _vm.baseline_at.is_not(None) & _vm.restored_at.is_(None)
    own = _ROW.where(away | leased, _vm.run_id.not_in(imported_ids())).order_by(_vm.run_id, _vm.id)
    found = sorted(map(vm_of, conn.execute(own)), key=lambda vm: vm.at_baseline)
    wanted = select(tables.run).where(tables.run.c.id.in_({vm.run_id for vm in found}))
    runs = {row.id: run_of(row) for row in conn.execute(wanted)}
    return [(vm, at_site(conn, runs[vm.run_id], vm.node)) for vm in found]


def vm_of(row: Row[*tuple[Any, ...]]) -> Vm:
    return _vm_from({name: value for name, value in row._mapping.items() if not name.startswith("lease_")})


def _vm_from(columns: Mapping[str, Any]) -> Vm:
    values = dict(columns)
    outcome = values["restore_outcome"]
    first = values.pop("baseline_json")
    values["baseline"] = values.pop(_CORRECTED, None) or first
    values["restore_detail"] = values.pop("restore_detail_json")
    values["restore_outcome"] = None if outcome is None else RestoreOutcome(outcome)
    return Vm(**values)


def _set(conn: Connection, vm_id: int, **values: object) -> None:
    conn.execute(update(tables.vm).where(_vm.id == vm_id).values(**values))
