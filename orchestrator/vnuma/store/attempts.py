"""Attempts: what an attempt at a cell requested, did, saw and resulted in.

Every write except `amend_effective` checks the fencing token in its own transaction. It raises LeaseLost for
an outdated token and StoreError for an ended attempt.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, select, update

from vnuma.errors import StoreError
from vnuma.store import facts, tables
from vnuma.store.leases import AttemptOwner, check_attempt
from vnuma.store.rows import Attempt, AttemptLine, CellState, Outcome
from vnuma.store.tables import all_of, one_of, utc_now

_attempt = tables.attempt.c
_cell = tables.cell.c

_CELL_AFTER = {
    Outcome.VALID: CellState.VALID,
    Outcome.INVALID: CellState.FAILED,
    Outcome.FAILED: CellState.FAILED,
    Outcome.INTERRUPTED: CellState.PENDING,
}


def set_step(conn: Connection, attempt_id: int, token: int, step: str) -> None:
    """Set the present step, which progress bar, `status` and AWX show.

    A step's first word is its stage; the seconds of each stage are added up.
    """
    now = utc_now()
    timings = _timings(check_attempt(conn, attempt_id, token), now)
    _update(conn, attempt_id, step=step, step_at=now, timings_json=timings)


def save_plan(
    conn: Connection, attempt_id: int, token: int, *, intended: object, change: object, predicted: object
) -> None:
    """Store what the arm asks for, what is changed on the VM, and the guest's predicted topology."""
    check_attempt(conn, attempt_id, token)
    _update(conn, attempt_id, intended_json=intended, change_json=change, predicted_json=predicted)


def save_effective(
    conn: Connection, attempt_id: int, token: int, value: object, scopes: facts.Scopes | None = None
) -> None:
    """Store what vSphere's read-back, the guest and SQL Server show, and facts about it by scope."""
    facts.add_attempt_facts(conn, attempt_id, token, scopes or {})
    _update(conn, attempt_id, effective_json=value)


def amend_effective(conn: Connection, attempt_id: int, value: object) -> None:
    """Add evidence about a boot after its attempt has ended.

    It no longer affects the outcome, and takes no token, since the attempt's own is outdated.
    """
    _update(conn, attempt_id, effective_json=value)


def finish(
    conn: Connection,
    attempt_id: int,
    token: int,
    outcome: Outcome,
    *,
    reason: str | None = None,
    detail: str | None = None,
) -> None:
    """End the attempt and update its cell. Every outcome except `valid` needs a `reason`, a stable
    identifier.
    """
    if (outcome is Outcome.VALID) != (reason is None):
        raise ValueError(
            f"an attempt ends as valid, or as another outcome with a reason; not as {outcome} with {reason!r}"
        )
    owner, now = check_attempt(conn, attempt_id, token), utc_now()
    ended = {"outcome": outcome, "reason": reason, "detail": detail, "ended_at": now}
    _update(conn, attempt_id, **ended, timings_json=_timings(owner, now))
    conn.execute(update(tables.cell).where(_cell.id == owner.cell_id).values(state=_CELL_AFTER[outcome]))


def get_attempt(conn: Connection, attempt_id: int) -> Attempt:
    """The attempt with that id. Raises StoreError if there is none."""
    found = one_of(conn, Attempt, _joined().where(_attempt.id == attempt_id))
    if found is None:
        raise StoreError(f"The store has no attempt {attempt_id}.", fix="vnuma status lists the runs.")
    return found


def attempts_of_run(conn: Connection, run_id: int) -> tuple[Attempt, ...]:
    """All attempts of the run, including interrupted ones, in the order they began."""
    return all_of(conn, Attempt, _joined().where(_cell.run_id == run_id))


def lines_of_run(conn: Connection, run_id: int, vm_id: int | None = None) -> tuple[AttemptLine, ...]:
    """All attempts of the run, or of one of its VMs, without their documents: fast for long runs."""
    own = (column for column in _attempt if not column.name.endswith("_json"))
    query = (
        select(*own, _cell.vm_id, _cell.label, _cell.block)
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .where(_cell.run_id == run_id)
        .order_by(_attempt.id)
    )
    if vm_id is not None:
        query = query.where(_cell.vm_id == vm_id)
    return all_of(conn, AttemptLine, query)


def changes_of_vm(conn: Connection, vm_id: int) -> tuple[Any, ...]:
    """The distinct changes of a VM's attempts, in no order: at most one per pair of arms."""
    query = (
        select(_attempt.change_json)
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .where(_cell.vm_id == vm_id, _attempt.change_json.is_not(None))
        .distinct()
    )
    return tuple(conn.scalars(query))


def _timings(owner: AttemptOwner, now: datetime) -> dict[str, float]:
    """Seconds by stage so far, including the present step."""
    if owner.step is None or owner.step_at is None:
        return dict(owner.timings)
    stage = owner.step.split(" ", 1)[0].rstrip(":")
    spent = owner.timings.get(stage, 0.0) + (now - owner.step_at).total_seconds()
    return {**owner.timings, stage: round(spent, 3)}


def _update(conn: Connection, attempt_id: int, **values: object) -> None:
    conn.execute(update(tables.attempt).where(_attempt.id == attempt_id).values(**values))


def _joined() -> Select[*tuple[Any, ...]]:
    return (
        select(tables.attempt, _cell.vm_id, _cell.arm, _cell.label, _cell.block, _cell.position)
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .order_by(_attempt.id)
    )
