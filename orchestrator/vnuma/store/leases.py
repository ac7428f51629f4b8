"""Leases: who may change a VM, with a fencing token that only ever grows.

A process with token 5 must stop at its next write once the token is 6, even if it was suspended meanwhile.
The check locks the lease row in the writer's own transaction, so the token cannot change between check and
commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, insert, select, update

from vnuma.errors import LeaseLost, StoreError, VmHeld
from vnuma.store import tables
from vnuma.store.rows import Lease, Run, Study, Vm
from vnuma.store.runs import is_imported, refuse_imported
from vnuma.store.tables import add_unless_there, all_of, one_of, record_of, utc_now

_vm = tables.vm.c

_lease = tables.lease.c

_run = tables.run.c


@dataclass(frozen=True)
class AttemptOwner:
    """The run, VM and cell of an attempt, and its progress: `timings` are seconds by stage."""

    run_id: int
    vm_id: int
    cell_id: int
    step: str | None
    step_at: datetime | None
    timings: Mapping[str, float]


def take_lease(conn: Connection, vm_key: str, run_id: int, holder: str) -> int:
    """Lease the VM to the run and return the new token; the run's own lease is renewed.

    Raises VmHeld while another run that has not ended holds it, or one that ended without restoring the VM,
    whose present state would become the next baseline. Raises InputError for an imported run.
    """
    refuse_imported(conn, run_id)
    add_unless_there(conn, tables.lease, vm_key=vm_key, token=0)
    row = conn.execute(select(tables.lease).where(_lease.vm_key == vm_key).with_for_update()).one()
    if row.run_id is not None and row.run_id != run_id:
        _refuse_unless_over(conn, Lease(**row._mapping))
    return _set_holder(conn, vm_key, run_id, holder)


def raise_token(conn: Connection, vm_key: str, run_id: int, holder: str | None = None) -> int:
    """Fence off all other processes of this run; `holder` names the new one, None keeps the name.

    Raises VmHeld when another run holds the lease, LeaseLost when nobody does, InputError for an imported
    run.
    """
    refuse_imported(conn, run_id)
    row = conn.execute(select(tables.lease).where(_lease.vm_key == vm_key).with_for_update()).one_or_none()
    if row is None or row.run_id is None:
        raise LeaseLost(
            f"{_vm_name(conn, vm_key)} is not leased to any run.",
            fix="vnuma status shows which VMs still have to be restored.",
        )
    if row.run_id != run_id:
        raise _held(conn, Lease(**row._mapping))
    return _set_holder(conn, vm_key, run_id, holder or row.holder)


def kept(query: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    """The query of a VM's row, with its lease as it stays during this transaction: see `is_kept`."""
    joined = query.join(tables.lease, _lease.vm_key == _vm.vm_key)
    columns = (_lease.token.label("lease_token"), _lease.run_id.label("lease_run"))
    return joined.add_columns(*columns).with_for_update(read=True, of=tables.lease)


def is_kept(row: Row[*tuple[Any, ...]], token: int) -> bool:
    """Whether `token` is the current one of the VM in a row of `kept`."""
    return row.lease_run is not None and row.lease_token == token


def require_current(conn: Connection, vm_key: str, token: int) -> None:
    """Raise LeaseLost unless `token` is the VM's current one. For units that only read: locks nothing."""
    row = conn.execute(select(_lease.token, _lease.run_id).where(_lease.vm_key == vm_key)).one_or_none()
    _require(conn, row, vm_key, token)


def check_attempt(conn: Connection, attempt_id: int, token: int) -> AttemptOwner:
    """The attempt's owner, if it is still open and `token` is both its own and the current one.

    Raises LeaseLost for an outdated token, StoreError for an unknown or ended attempt.
    """
    row = conn.execute(_KEPT_OWNER, {"attempt": attempt_id}).one_or_none()
    if row is None:
        raise StoreError(
            f"The store has no attempt {attempt_id} on a leased VM.", fix="vnuma status lists the runs."
        )
    if not is_kept(row, token) or row.token != token:
        raise lease_lost(row.name)
    if row.ended_at is not None:
        raise StoreError(
            f"Attempt {attempt_id} on {row.name} has already ended ({row.outcome}); nothing can be "
            "added to it.",
            fix="Claim the cell again: vnuma run --resume RUN",
        )
    return AttemptOwner(row.run_id, row.vm_id, row.cell_id, row.step, row.step_at, row.timings_json or {})


_attempt = tables.attempt.c
OWNER = (
    select(
        *(_attempt.token, _attempt.ended_at, _attempt.outcome),
        *(_attempt.step, _attempt.step_at, _attempt.timings_json),
        *(_vm.vm_key, _vm.name),
        *(tables.cell.c.vm_id, tables.cell.c.run_id, tables.cell.c.id.label("cell_id")),
    )
    .join(tables.cell, tables.cell.c.id == _attempt.cell_id)
    .join(tables.vm, _vm.id == tables.cell.c.vm_id)
    .where(_attempt.id == bindparam("attempt"))
)
"""The query for the owner of the attempt `attempt`, and whether it is still open."""
_KEPT_OWNER = kept(OWNER)
"""Made once: a step asks it several times."""


def release_lease(conn: Connection, vm_key: str, token: int) -> None:
    """Release the VM. The row keeps its token, so that no old token becomes valid again."""
    alone = select(_lease.token, _lease.run_id).where(_lease.vm_key == vm_key).with_for_update()
    _require(conn, conn.execute(alone).one_or_none(), vm_key, token)
    conn.execute(
        update(tables.lease).where(_lease.vm_key == vm_key).values(run_id=None, holder=None, taken_at=None)
    )


def token_of(conn: Connection, vm_key: str, run_id: int) -> int | None:
    """The token with which the run holds the VM now; None when it does not."""
    lease = get_lease(conn, vm_key)
    return lease.token if lease and lease.run_id == run_id else None


def get_lease(conn: Connection, vm_key: str) -> Lease | None:
    query = select(tables.lease).where(_lease.vm_key == vm_key, _lease.run_id.is_not(None))
    return one_of(conn, Lease, query)


def _require(conn: Connection, lease: Row[*tuple[Any, ...]] | None, vm_key: str, token: int) -> None:
    if lease is None or lease.run_id is None or lease.token != token:
        raise lease_lost(_vm_name(conn, vm_key))


def _set_holder(conn: Connection, vm_key: str, run_id: int, holder: str) -> int:
    token: int = conn.execute(
        update(tables.lease)
        .where(_lease.vm_key == vm_key)
        .values(run_id=run_id, holder=holder, taken_at=utc_now(), token=_lease.token + 1)
        .returning(_lease.token)
    ).scalar_one()
    return token


def _refuse_unless_over(conn: Connection, lease: Lease) -> None:
    row = conn.execute(
        select(_run.name, _run.state, _vm.name.label("vm"), _vm.baseline_at, _vm.restored_at)
        .join(tables.vm, _vm.run_id == _run.id)
        .where(_run.id == lease.run_id, _vm.vm_key == lease.vm_key)
    ).one_or_none()
    if row is None or not row.state.ended:
        raise _held(conn, lease)
    if row.baseline_at is not None and row.restored_at is None:
        raise VmHeld(
            f"{row.vm} was not restored after run {row.name}, which {lease.holder} started.",
            fix=f"vnuma restore {row.vm}. Nothing was changed.",
        )


def _held(conn: Connection, lease: Lease) -> VmHeld:
    run = conn.scalar(select(_run.name).where(_run.id == lease.run_id))
    return VmHeld(
        f"{_vm_name(conn, lease.vm_key)} is under study by {lease.holder}, run {run}, "
        f"since {lease.taken_at:%Y-%m-%d %H:%M} UTC.",
        fix=f"Wait, or ask them to: vnuma stop {run}. Nothing was changed.",
    )


def lease_lost(vm_name: str) -> LeaseLost:
    """The error of a process whose token is outdated."""
    return LeaseLost(
        f"Another process has taken over {vm_name}; this process must not write any more.",
        fix="Nothing to do: the other process continues. vnuma status shows it.",
    )


def _vm_name(conn: Connection, vm_key: str) -> str:
    name = conn.scalar(select(_vm.name).where(_vm.vm_key == vm_key).order_by(_vm.id.desc()).limit(1))
    return name or f"The VM {vm_key}"


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
_OF_SITE = _vm.node.label("site")
"""The column keeps the name that it has in archives."""
_COLUMNS = (
    *(column for column in _vm if column is not _vm.baseline_json),
    func.coalesce(_CORRECTED, _vm.baseline_json).label("baseline"),
    _OF_SITE,
)
VM_ROW = select(*_COLUMNS)
_KEPT_VM = kept(VM_ROW.where(_vm.id == bindparam("vm")))


def add_vm(
    conn: Connection,
    run_id: int,
    *,
    vm_key: str,
    name: str,
    path: str,
    esxi_host: str,
    site: str | None = None,
) -> Vm:
    """Add a VM to a run. `vm_key` identifies it across runs, `esxi_host` is the machine it loads.

    `site`: None for the controller's own.
    """
    row = conn.execute(
        insert(tables.vm)
        .values(run_id=run_id, vm_key=vm_key, name=name, path=path, esxi_host=esxi_host, node=site)
        .returning(*tables.vm.c, _OF_SITE)
    ).one()
    return record_of(Vm, row._mapping)


def get_vm(conn: Connection, vm_id: int) -> Vm:
    """The VM with that id. Raises StoreError if there is none."""
    found = one_of(conn, Vm, VM_ROW.where(_vm.id == vm_id))
    if found is None:
        raise StoreError(f"The store has no VM {vm_id}.", fix="vnuma status lists runs and VMs.")
    return found


def leased_vm(conn: Connection, vm_id: int, token: int) -> Vm:
    """The VM, whose `token` stays current in this transaction. Raises LeaseLost and StoreError."""
    row = conn.execute(_KEPT_VM, {"vm": vm_id}).one_or_none()
    if row is None:
        raise lease_lost(get_vm(conn, vm_id).name)
    if not is_kept(row, token):
        raise lease_lost(row.name)
    return record_of(Vm, row._mapping)


def vms_of_run(conn: Connection, run_id: int) -> tuple[Vm, ...]:
    """The run's VMs in the order of adding."""
    return all_of(conn, Vm, VM_ROW.where(_vm.run_id == run_id).order_by(_vm.id))


def vm_named(conn: Connection, run_id: int, name: str) -> Vm | None:
    query = VM_ROW.where(_vm.run_id == run_id, _vm.name == name).order_by(_vm.id.desc()).limit(1)
    return one_of(conn, Vm, query)


_study, _site = tables.study.c, tables.site.c
_PART = (_site.supervisor_pid, _site.supervisor_host, _site.heartbeat_at)
_AT_WORK = (
    select(_site.node, *_PART, *_run, *_study, *_COLUMNS)
    .select_from(tables.run)
    .join(tables.study, _study.id == _run.study_id)
    .join(tables.vm, _vm.run_id == _run.id)
    .outerjoin(tables.site, (_site.run_id == _run.id) & (_site.node == _vm.node))
    .where(_run.name == bindparam("run"), _vm.name == bindparam("vm"), ~is_imported())
    .order_by(_vm.id.desc())
    .limit(1)
)


def vm_at_work(conn: Connection, run_name: str, name: str) -> tuple[Run, Study, Vm] | None:
    """A run, its study and its VM of that name in one SELECT; the run as `at_site` gives it for this VM.

    None if there is no such run or VM, or if the run was imported.
    """
    row = conn.execute(_AT_WORK, {"run": run_name, "vm": name}).one_or_none()
    if row is None:
        return None
    site, *values = row
    parts = [
        {column.name: values.pop(0) for column in of} for of in (_PART, tuple(_run), tuple(_study), _COLUMNS)
    ]
    whole, vm = record_of(Run, parts[1]), record_of(Vm, parts[3])
    return replace(whole, site=site, **parts[0]) if site else whole, Study(**parts[2]), vm
