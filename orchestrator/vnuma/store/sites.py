"""The parts of a run that nodes of a mesh do: who does them, and whether the controller sees the node."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from vnuma.store import tables
from vnuma.store.rows import Site
from vnuma.store.types import utc_now

_site = tables.site.c


def add_sites(conn: Connection, run_id: int, nodes: Iterable[str]) -> None:
    """Give each node a part of the run."""
    rows = [{"run_id": run_id, "node": node} for node in nodes]
    if rows:
        conn.execute(insert(tables.site), rows)


def sites_of_run(conn: Connection, run_id: int) -> tuple[Site, ...]:
    """The parts of a run that nodes do, by the nodes' names."""
    query = select(tables.site).where(_site.run_id == run_id).order_by(_site.node)
    found = []
    for row in conn.execute(query):
        values = dict(row._mapping)
        values["end"] = values.pop("end_json")
        found.append(Site(**values))
    return tuple(found)


def begin(conn: Connection, run_id: int, node: str) -> None:
    """The node's part is done by a new work unit; how an earlier one ended counts no more."""
    _set(conn, run_id, node, unit=None, unit_at=utc_now(), unseen_since=None, end_json=None)


def set_unit(conn: Connection, run_id: int, node: str, unit: str) -> None:
    """The work unit that does the node's part."""
    _set(conn, run_id, node, unit=unit)


def set_unseen(conn: Connection, run_id: int, node: str, since: datetime | None) -> None:
    """Since when the controller's mesh does not reach the node; None: it does."""
    _set(conn, run_id, node, unseen_since=since)


def set_end(conn: Connection, run_id: int, node: str, end: object) -> None:
    """How the node's part ended."""
    _set(conn, run_id, node, end_json=end)


def _set(conn: Connection, run_id: int, node: str, **values: object) -> None:
    conn.execute(update(tables.site).where(_site.run_id == run_id, _site.node == node).values(**values))
