"""The VMs of a run: who they are. Their baselines: `baselines`."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, func, insert, select

from vnuma.errors import StoreError
from vnuma.store import tables
from vnuma.store.leases import is_kept, kept, lease_lost
from vnuma.store.rows import Run, Study, Vm
from vnuma.store.runs import is_imported
from vnuma.store.types import record_of

_vm = tables.vm.c
_fact = tables.fact.c

CORRECTED = "baseline_corrected"
"""Scope of the fact with a baseline that was read again; the vm table's own is written once."""

_CORRECTED = (
    select(_fact.value_json)
    .where(_fact.run_id == _vm.run_id, _fact.vm_id == _vm.id, _fact.scope == CORRECTED)
    .order_by(_fact.id.desc())
    .limit(1)
    .scalar_subquery()
)
_COLUMNS = (
    *(column for column in _vm if column is not _vm.baseline_json),
    func.coalesce(_CORRECTED, _vm.baseline_json).label("baseline"),
)
VM_ROW = select(*_COLUMNS)


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

    `node` is its site; None for the controller's own.
    """
    row = conn.execute(
        insert(tables.vm)
        .values(run_id=run_id, vm_key=vm_key, name=name, path=path, esxi_host=esxi_host, node=node)
        .returning(*tables.vm.c)
    ).one()
    return record_of(Vm, row._mapping)


def get_vm(conn: Connection, vm_id: int) -> Vm:
    """The VM with that id. Raises StoreError if there is none."""
    row = conn.execute(VM_ROW.where(_vm.id == vm_id)).one_or_none()
    if row is None:
        raise StoreError(f"The store has no VM {vm_id}.", fix="vnuma status lists runs and VMs.")
    return record_of(Vm, row._mapping)


def leased_vm(conn: Connection, vm_id: int, token: int) -> Vm:
    """The VM, whose `token` stays current in this transaction. Raises LeaseLost and StoreError."""
    row = conn.execute(kept(VM_ROW.where(_vm.id == vm_id))).one_or_none()
    if row is None:
        raise lease_lost(get_vm(conn, vm_id).name)
    if not is_kept(row, token):
        raise lease_lost(row.name)
    return record_of(Vm, row._mapping)


def vms_of_run(conn: Connection, run_id: int) -> tuple[Vm, ...]:
    """The run's VMs in the order of adding."""
    query = VM_ROW.where(_vm.run_id == run_id).order_by(_vm.id)
    return tuple(record_of(Vm, row) for row in conn.execute(query).mappings())


def vm_named(conn: Connection, run_id: int, name: str) -> Vm | None:
    query = VM_ROW.where(_vm.run_id == run_id, _vm.name == name).order_by(_vm.id.desc()).limit(1)
    row = conn.execute(query).one_or_none()
    return None if row is None else record_of(Vm, row._mapping)


def vm_at_work(conn: Connection, run_name: str, name: str) -> tuple[Run, Study, Vm] | None:
    """A run, its study and its VM of that name in one SELECT; the run as `at_site` gives it for this VM.

    None if there is no such run or VM, or if the run was imported.
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
    whole, vm = record_of(Run, parts[1]), record_of(Vm, parts[3])
    return replace(whole, site=node, **parts[0]) if node else whole, Study(**parts[2]), vm
