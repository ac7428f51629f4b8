"""Facts that decide comparability: host, BIOS, ESXi, guest, SQL settings, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, insert, select

from vnuma.errors import StoreError
from vnuma.store import tables
from vnuma.store.leases import OWNER, check_attempt
from vnuma.store.rows import Fact
from vnuma.store.tables import all_of, one_of, utc_now

CLIENT = "client"
"""Scope of the client's properties that affect times, where a site calls a VM's SQL Server; the run's own
client is in its row.
"""

Scopes = Mapping[str, Mapping[str, object]]
_fact = tables.fact.c


def add_run_facts(conn: Connection, run_id: int, scope: str, values: Mapping[str, object]) -> None:
    """Store facts of the run as a whole. Storing a key again keeps both rows."""
    _add(conn, {scope: values}, run_id=run_id)


def add_vm_facts(conn: Connection, vm_id: int, scope: str, values: Mapping[str, object]) -> None:
    """Store facts of one VM of a run."""
    run_id = conn.scalar(select(tables.vm.c.run_id).where(tables.vm.c.id == vm_id))
    if run_id is None:
        raise StoreError(f"The store has no VM {vm_id}.", fix="vnuma status lists runs and VMs.")
    _add(conn, {scope: values}, run_id=run_id, vm_id=vm_id)


def add_attempt_facts(conn: Connection, attempt_id: int, token: int, scopes: Scopes) -> None:
    """Store facts of one attempt, by scope. Raises LeaseLost when the token is no longer the VM's."""
    owner = check_attempt(conn, attempt_id, token)
    _add(conn, scopes, run_id=owner.run_id, vm_id=owner.vm_id, attempt_id=attempt_id)


def add_late_facts(conn: Connection, attempt_id: int, scope: str, values: Mapping[str, object]) -> None:
    """Store late evidence about an ended attempt; it no longer affects the outcome."""
    owner = conn.execute(OWNER, {"attempt": attempt_id}).one()
    _add(conn, {scope: values}, run_id=owner.run_id, vm_id=owner.vm_id, attempt_id=attempt_id)


def last_of_vm(conn: Connection, run_id: int, vm_key: str, scope: str) -> Fact | None:
    """The latest fact of this scope for the run's VM, or None."""
    query = (
        select(tables.fact)
        .join(tables.vm, tables.vm.c.id == _fact.vm_id)
        .where(tables.vm.c.run_id == run_id, tables.vm.c.vm_key == vm_key, _fact.scope == scope)
        .order_by(_fact.id.desc())
        .limit(1)
    )
    return one_of(conn, Fact, query)


def facts_of_run(conn: Connection, run_id: int, scope: str | None = None) -> tuple[Fact, ...]:
    """The run's facts, including those of its VMs and attempts, in the order of storing."""
    query = select(tables.fact).where(_fact.run_id == run_id).order_by(_fact.id)
    if scope is not None:
        query = query.where(_fact.scope == scope)
    return all_of(conn, Fact, query)


def last_scope(conn: Connection, vm_id: int, scopes: Sequence[str]) -> str | None:
    """Which of these scopes has the latest fact of a VM; None without any. Reads no values."""
    query = select(_fact.scope).where(_fact.vm_id == vm_id, _fact.scope.in_(scopes))
    return conn.scalar(query.order_by(_fact.id.desc()).limit(1))


def last_value(conn: Connection, vm_id: int, scope: str, key: str, *, not_of: int) -> object:
    """The latest value of a key from a VM's attempts, except attempt `not_of`; None without one."""
    query = select(_fact.value_json).where(
        _fact.vm_id == vm_id, _fact.scope == scope, _fact.key == key, _fact.attempt_id != not_of
    )
    return conn.scalar(query.order_by(_fact.id.desc()).limit(1))


def _add(conn: Connection, scopes: Scopes, **owner: int) -> None:
    at = utc_now()
    rows = [
        {"scope": scope, "key": key, "value_json": value, "at": at, **owner}
        for scope, values in scopes.items()
        for key, value in values.items()
    ]
    if rows:
        conn.execute(insert(tables.fact), rows)
