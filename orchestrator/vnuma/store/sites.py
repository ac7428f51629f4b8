"""The sites of a run: who works on their VMs, and how that ended."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, insert, select, update

from vnuma.store import tables
from vnuma.store.rows import Site
from vnuma.store.tables import all_of

_site = tables.site.c


def add_sites(conn: Connection, run_id: int, names: Iterable[str]) -> None:
    """Give each site a part of the run."""
    rows = [{"run_id": run_id, "node": name} for name in names]
    if rows:
        conn.execute(insert(tables.site), rows)


def sites_of_run(conn: Connection, run_id: int) -> tuple[Site, ...]:
    """The sites of a run, by name."""
    rows = select(tables.site, _site.node.label("name"))
    return all_of(conn, Site, rows.where(_site.run_id == run_id).order_by(_site.node))


def set_end(conn: Connection, run_id: int, site: str, end: object) -> None:
    """Set how the site's part ended; None: it has not."""
    part = (_site.run_id == run_id) & (_site.node == site)
    conn.execute(update(tables.site).where(part).values(end_json=end))
