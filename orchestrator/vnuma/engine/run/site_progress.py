"""The sites of a run: who is working there, and what each last said."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from vnuma.engine.lease.supervision import BEAT_S, is_alive
from vnuma.store.rows import Run, RunState, Site
from vnuma.store.runs import at_site
from vnuma.store.sites import sites_of_run
from vnuma.store.types import utc_now

_LATE_AFTER = timedelta(seconds=3 * BEAT_S)


@dataclass(frozen=True)
class SiteProgress:
    """A site's part of a run. `words`: what is unusual there, or how the part ended; None if all is well."""

    node: str
    alive: bool
    words: str | None = None


def sites_at_work(connection: Connection, run: Run) -> tuple[SiteProgress, ...]:
    """The sites of this run."""
    return tuple(_site(connection, run, site) for site in sites_of_run(connection, run.id))


def _site(connection: Connection, run: Run, site: Site) -> SiteProgress:
    alive = is_alive(at_site(connection, run, site.node))
    words = None if run.state is RunState.FINISHED else _words(run, site, alive=alive)
    return SiteProgress(site.node, alive, words)


def _words(run: Run, site: Site, *, alive: bool) -> str | None:
    sign = site.heartbeat_at
    if alive:
        late = sign is not None and utc_now() - sign > _LATE_AFTER
        return f"last sign in the store at {sign.astimezone():%H:%M:%S}" if sign and late else None
    if isinstance(site.end, dict):
        problems = site.end.get("problems", ())
        return f"ended: {problems[0]['what']}" if problems else None
    start = f"there: vnuma run --resume {run.name} --site {site.node}"
    if sign is None:
        return f"nobody works there; {start}"
    return f"no sign in the store since {sign.astimezone():%H:%M:%S}; {start}"
