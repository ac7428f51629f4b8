"""The VMs of a run: who they are. Their baselines: `baselines`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from vnuma.errors import StoreError
from vnuma.store import tables
from vnuma.store.leases import is_kept, kept, lease_lost
from vnuma.store.rows import RestoreOutcome, Run, Study, Vm
from vnuma.store.runs import is_imported, run_from

_vm = tables.vm.c
_fact = tables.fact.c

CORRECTED = "baseline_corrected"
"""Scope of the fact with a baseline that was read again; the vm table's own is written once."""

_COLUMNS = (
    *tables.vm.c,
    select(_fact.value_json)
    .where(_fact.run_id == _vm.run_id, _fact.vm_id == _vm.id, _fact.scope == CORRECTED)
    .order_by(_fact.id.desc())
    .limit(1)
    .scalar_subquery()
    .label(CORRECTED),
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
    row = conn.execute(VM_ROW.where(_vm.id == vm_id)).one_or_none()
    if row is None:
        raise StoreError(f"The store has no VM {vm_id}.", fix="vnuma status lists runs and VMs.")
    return vm_of(row)


def own_vm(conn: Connection, vm_id: int, token: int) -> Vm:
    """The VM, whose `token` stays current in this transaction. Raises LeaseLost and StoreError."""
    row = conn.execute(kept(VM_ROW.where(_vm.id == vm_id))).one_or_none()
    if row is None:
        raise lease_lost(get_vm(conn, vm_id).name)
    if not is_kept(row, token):
        raise lease_lost(row.name)
    return vm_of(row)


def vms_of_run(conn: Connection, run_id: int) -> tuple[Vm, ...]:
    """The run's VMs in the order of adding."""
    query = VM_ROW.where(_vm.run_id == run_id).order_by(_vm.id)
    return tuple(vm_of(row) for row in conn.execute(query))


def vm_named(conn: Connection, run_id: int, name: str) -> Vm | None:
    """The run's VM of that name, or None."""
    query = VM_ROW.where(_vm.run_id == run_id, _vm.name == name).order_by(_vm.id.desc()).limit(1)
    row = conn.execute(query).one_or_none()
    return None if row is None else vm_of(row)


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
    whole = run_from(parts[1])
    return replace(whole, site=node, **parts[0]) if node else whole, Study(**parts[2]), _vm_from(parts[3])


def vm_of(row: Row[*tuple[Any, ...]]) -> Vm:
    return _vm_from({name: value for name, value in row._mapping.items() if not name.startswith("lease_")})


def _vm_from(columns: Mapping[str, Any]) -> Vm:
    values = dict(columns)
    outcome = values["restore_outcome"]
    first = values.pop("baseline_json")
    values["baseline"] = values.pop(CORRECTED, None) or first
    values["restore_detail"] = values.pop("restore_detail_json")
    values["restore_outcome"] = None if outcome is None else RestoreOutcome(outcome)
    return Vm(**values)
