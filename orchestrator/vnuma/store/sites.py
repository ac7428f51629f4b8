"""The parts of a run that mesh nodes do: who does them, and whether the controller sees the node."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from vnuma.store import tables
from vnuma.store.rows import Site
from vnuma.store.types import record_of, utc_now

_site = tables.site.c


def add_sites(conn: Connection, run_id: int, nodes: Iterable[str]) -> None:
    """Give each node a part of the run."""
    rows = [{"run_id": run_id, "node": node} for node in nodes]
    if rows:
        conn.execute(insert(tables.site), rows)


def sites_of_run(conn: Connection, run_id: int) -> tuple[Site, ...]:
    """The parts of a run that nodes do, by node name."""
    query = select(tables.site).where(_site.run_id == run_id).order_by(_site.node)
    return tuple(record_of(Site, row) for row in conn.execute(query).mappings())


def units_at_work(conn: Connection) -> frozenset[str]:
    """The work units whose end no run knows yet."""
    query = select(_site.unit).where(_site.unit.is_not(None), _site.end_json.is_(None))
    return frozenset(conn.execute(query).scalars())


def begin(conn: Connection, run_id: int, node: str) -> None:
    """Start the node's part with a new work unit, and clear an earlier outcome."""
    _set(conn, run_id, node, unit=None, unit_at=utc_now(), unseen_since=None, end_json=None)


def set_unit(conn: Connection, run_id: int, node: str, unit: str) -> None:
    """Set the work unit that does the node's part."""
    _set(conn, run_id, node, unit=unit)


def set_unseen(conn: Connection, run_id: int, node: str, since: datetime | None) -> None:
    """Set since when the controller's mesh does not reach the node; None if it does."""
    _set(conn, run_id, node, unseen_since=since)


def set_end(conn: Connection, run_id: int, node: str, end: object) -> None:
    """Set the outcome of the node's part."""
    _set(conn, run_id, node, end_json=end)


def _set(conn: Connection, run_id: int, node: str, **values: object) -> None:
    conn.execute(update(tables.site).where(_site.run_id == run_id, _site.node == node).values(**values))
