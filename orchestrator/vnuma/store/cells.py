"""The cells of a run's plan, and the transaction that claims one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    ScalarSelect,
    bindparam,
    func,
    insert,
    select,
    update,
)

from vnuma.domain.study.order import PlannedCell
from vnuma.domain.vm.facts import host_key
from vnuma.errors import (
    AccountRefused,
    CertificateRejected,
    DriverMissing,
    HostNotReady,
    InputError,
    PrivilegeMissing,
    StoreError,
    StudySetupFailed,
    WrongServer,
    reason_word,
)
from vnuma.store import tables
from vnuma.store.leases import CORRECTED, VM_ROW, get_vm, leased_vm
from vnuma.store.rows import Busy, Cell, CellState, Claim, Outcome, RestoreOutcome, Run, Vm
from vnuma.store.runs import at_site, imported_ids
from vnuma.store.tables import all_of, one_of, utc_now

_vm = tables.vm.c

_cell = tables.cell.c
_attempt = tables.attempt.c


PERMANENT = frozenset(
    reason_word(kind)
    for kind in (
        AccountRefused,
        PrivilegeMissing,
        CertificateRejected,
        DriverMissing,
        HostNotReady,
        InputError,
        StudySetupFailed,
        WrongServer,
    )
)
"""Reasons with which any attempt at any cell of the VM fails until a person acts.

The VM is restored and gets no further cell; a resumed run tries again. Such an attempt does not count for its
cell. A first login that SQL Server refuses is not among them, since that may pass after a boot; the last
login tried is (AccountRefused).
"""


def add_cells(conn: Connection, vm_id: int, cells: Sequence[PlannedCell]) -> None:
    """Add cells to a VM's plan, at the start of a run or block by block."""
    run_id = get_vm(conn, vm_id).run_id
    rows = [{"run_id": run_id, "vm_id": vm_id, **asdict(cell), "state": CellState.PENDING} for cell in cells]
    if rows:
        conn.execute(insert(tables.cell), rows)


def cells_of_run(conn: Connection, run_id: int, vm_id: int | None = None) -> tuple[Cell, ...]:
    """The run's cells, VM by VM, in the order of their positions."""
    query = select(tables.cell).where(_cell.run_id == run_id).order_by(_cell.vm_id, _cell.position)
    if vm_id is not None:
        query = query.where(_cell.vm_id == vm_id)
    return all_of(conn, Cell, query)


def skip_cells(
    conn: Connection,
    vm_id: int,
    token: int,
    *,
    reason: str,
    from_block: int = 0,
    labels: Collection[str] | None = None,
) -> int:
    """Give up pending and failed cells from that block on, of all labels or these; returns how many."""
    leased_vm(conn, vm_id, token)
    left = _cell.state.in_([CellState.PENDING, CellState.FAILED])
    chosen = update(tables.cell).where(_cell.vm_id == vm_id, left, _cell.block >= from_block)
    if labels is not None:
        chosen = chosen.where(_cell.label.in_(labels))
    return conn.execute(chosen.values(state=CellState.SKIPPED, reason=reason)).rowcount


def claim_next(
    conn: Connection, vm_id: int, token: int, most: int, *, exclusive_host: bool
) -> Claim | Busy | None:
    """Claim the VM's next cell and open an attempt at it, in the caller's single write transaction.

    The next cell is the first by position that is pending, or that had fewer than `most` attempts without a
    result (`failed` or `invalid`, for a reason that is not PERMANENT). Returns None when there is no such
    cell, and Busy while this VM is being measured, or another run's VM on the same ESXi host, or with
    `exclusive_host` another VM of this run there. Raises LeaseLost, and StoreError for a VM without a
    baseline.

    Claims lock the VM rows of the host instead of using SKIP LOCKED: skipping a row would take cells out of
    their random order, and two VMs of one host could both start.
    """
    vm = leased_vm(conn, vm_id, token)
    busy = _lock_host(conn, vm, exclusive_host=exclusive_host)
    if busy is not None:
        return busy
    cell = one_of(conn, Cell, _NEXT_LOCKED, vm=vm_id, most=most)
    if cell is None:
        return None
    leave(conn, vm)
    return _open_attempt(conn, cell, token)


def interrupt_attempts(conn: Connection, vm_id: int, token: int) -> int:
    """End the VM's open attempts as interrupted and make their cells pending; returns how many.

    Only for the process that has just raised the token, or knows that the measuring process is gone.
    """
    leased_vm(conn, vm_id, token)
    claimed = conn.scalars(
        update(tables.cell)
        .where(_cell.vm_id == vm_id, _cell.state == CellState.CLAIMED)
        .values(state=CellState.PENDING)
        .returning(_cell.id)
    ).all()
    if not claimed:
        return 0
    return conn.execute(
        update(tables.attempt)
        .where(_attempt.cell_id.in_(claimed), _attempt.ended_at.is_(None))
        .values(outcome=Outcome.INTERRUPTED, reason="interrupted", ended_at=utc_now())
    ).rowcount


def _lock_host(conn: Connection, vm: Vm, *, exclusive_host: bool) -> Busy | None:
    """Lock this host's claims, then return who is being measured there, if anybody.

    A host is identified by name and vCenter, since another vCenter may have one of the same name.
    """
    vcenter, name = vm.host_key
    here = (_vm.esxi_host == name) & _vm.vm_key.startswith(f"{vcenter}/", autoescape=True)
    if not exclusive_host:
        here &= (_vm.run_id != vm.run_id) | (_vm.id == vm.id)
    conn.execute(select(_vm.id).where(here).order_by(_vm.id).with_for_update(key_share=True)).all()
    return busy_hosts(conn, [vm], exclusive_host=exclusive_host).get(vm.id)


def busy_hosts(conn: Connection, waiting: Sequence[Vm], *, exclusive_host: bool) -> dict[int, Busy]:
    """Who these VMs must wait for on their hosts, by VM id, in one query; without VMs that need not wait."""
    rows = conn.execute(
        select(
            *(_vm.id, _vm.run_id, _vm.vm_key, _vm.name, _vm.esxi_host),
            *(tables.run.c.name.label("run"), _attempt.started_at),
        )
        .select_from(tables.cell)
        .join(tables.vm, _vm.id == _cell.vm_id)
        .join(tables.run, tables.run.c.id == _cell.run_id)
        .join(tables.attempt, _attempt.cell_id == _cell.id)
        .where(_vm.esxi_host.in_({vm.esxi_host for vm in waiting}))
        .where(_cell.state == CellState.CLAIMED, _attempt.ended_at.is_(None))
        .order_by(_attempt.started_at)
    )
    measured = defaultdict(list)
    for row in rows:
        measured[host_key(row.vm_key, row.esxi_host)].append(row)
    found: dict[int, Busy] = {}
    for vm in waiting:
        for row in measured[vm.host_key]:
            if exclusive_host or row.run_id != vm.run_id or row.id == vm.id:
                found.setdefault(vm.id, _busy(vm, row))
    return found


def _busy(vm: Vm, row: Row[*tuple[Any, ...]]) -> Busy:
    where = f" on {vm.esxi_host}" if row.name != vm.name else ""
    reason = f"{row.name} is being measured{where} by run {row.run} since {row.started_at:%H:%M} UTC"
    return Busy(reason=reason, run_name=row.run, vm_name=row.name, since=row.started_at)


def peek_next(conn: Connection, vm_id: int, most: int) -> Cell | None:
    """The cell that `claim_next` would take now; None when there is none. Does not take it."""
    return one_of(conn, Cell, _NEXT, vm=vm_id, most=most)


def used_up_cells(conn: Connection, run_id: int, most: int) -> set[int]:
    """Cells of the run that `claim_next` never takes again: without a valid attempt, and with `most` that
    counted.
    """
    return set(conn.scalars(select(_cell.id).where(_cell.run_id == run_id, _is_used_up(most))))


def _is_used_up(most: int) -> ColumnElement[bool]:
    return (_cell.state != CellState.VALID) & (_tries() >= most)


def limits_of(conn: Connection, vm: Vm, most: int) -> Row[*tuple[Any, ...]]:
    """The stop requested of its run, its lease's token, and how many of its cells are used up."""
    run, lease = tables.run.c, tables.lease.c
    used_up = select(func.count()).where(_cell.vm_id == vm.id, _is_used_up(most)).scalar_subquery()
    return conn.execute(
        select(run.stop_requested, lease.token, used_up.label("used_up"))
        .select_from(tables.run)
        .outerjoin(tables.lease, (lease.vm_key == vm.vm_key) & lease.run_id.is_not(None))
        .where(run.id == vm.run_id)
    ).one()


def _tries() -> ScalarSelect[int]:
    """The number of a cell's attempts without a result, for a reason that counts."""
    return (
        select(func.count())
        .where(
            _attempt.cell_id == _cell.id,
            _attempt.outcome.in_([Outcome.FAILED, Outcome.INVALID]),
            _attempt.reason.not_in(sorted(PERMANENT)),
        )
        .scalar_subquery()
    )


_NEXT = (
    select(tables.cell)
    .where(_cell.vm_id == bindparam("vm"), _cell.state.in_([CellState.PENDING, CellState.FAILED]))
    .where(_tries() < bindparam("most"))
    .order_by(_cell.position)
    .limit(1)
)
_NEXT_LOCKED = _NEXT.with_for_update()


def _open_attempt(conn: Connection, cell: Cell, token: int) -> Claim:
    tried = select(func.coalesce(func.max(_attempt.number), 0)).where(_attempt.cell_id == cell.id)
    number, now = tried.scalar_subquery() + 1, utc_now()
    opened = conn.execute(
        insert(tables.attempt)
        .values(cell_id=cell.id, number=number, token=token, step="claim", step_at=now, started_at=now)
        .returning(_attempt.id, _attempt.number)
    ).one()
    conn.execute(update(tables.cell).where(_cell.id == cell.id).values(state=CellState.CLAIMED))
    planned = (cell.position, cell.block, cell.arm, cell.label)
    return Claim(*planned, id=opened.id, cell_id=cell.id, number=opened.number, token=token)


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
    found = sorted(all_of(conn, Vm, own), key=lambda vm: vm.at_baseline)
    wanted = select(tables.run).where(tables.run.c.id.in_({vm.run_id for vm in found}))
    runs = {run.id: run for run in all_of(conn, Run, wanted)}
    return [(vm, at_site(conn, runs[vm.run_id], vm.site)) for vm in found]


def studied(conn: Connection) -> set[str]:
    """Inventory names of the VMs in runs of this store; imported runs do not count."""
    return set(conn.execute(select(_vm.name).where(_vm.run_id.not_in(imported_ids()))).scalars())


def _set(conn: Connection, vm_id: int, **values: object) -> None:
    conn.execute(update(tables.vm).where(_vm.id == vm_id).values(**values))
