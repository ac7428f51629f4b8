"""The parts of a run that mesh nodes do: who is working, and which sites cannot be seen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from vnuma.engine.lease.supervision import is_alive
from vnuma.store.rows import Run, Site
from vnuma.store.runs import at_site
from vnuma.store.sites import sites_of_run


@dataclass(frozen=True)
class SiteProgress:
    """A node's part of a run. `words`: why it cannot be seen now, and since when; None if it can."""

    node: str
    alive: bool
    words: str | None = None


def sites_at_work(connection: Connection, run: Run) -> tuple[SiteProgress, ...]:
    """The parts of this run that nodes do."""
    return tuple(_site(connection, run, site) for site in sites_of_run(connection, run.id))


def _site(connection: Connection, run: Run, site: Site) -> SiteProgress:
    alive = is_alive(at_site(connection, run, site.node))
    words = None if run.state.ended or site.end is not None else _hidden(site, alive=alive)
    return SiteProgress(site.node, alive, words)


def _hidden(site: Site, *, alive: bool) -> str | None:
    since, sign = _clock_time(site.unseen_since), _clock_time(site.heartbeat_at)
    told = [f"the mesh has not reached it since {since}"] if site.unseen_since else []
    if alive and site.unseen_since:
        later = site.heartbeat_at is not None and site.heartbeat_at > site.unseen_since
        told.append(f"{'its work goes on: ' if later else ''}last sign in the store {sign}")
    elif not alive and site.heartbeat_at:
        told.append(f"no sign of its work in the store since {sign}")
    return "; ".join(told) or None


def _clock_time(moment: datetime | None) -> str:
    return f"{moment.astimezone():%H:%M:%S}" if moment else "never"
