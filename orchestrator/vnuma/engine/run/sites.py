"""A run over several sites: each site's VMs are worked on by a process there, and all meet in the store.

`vnuma run --resume RUN --site SITE` is that process; whatever starts jobs there starts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection

from vnuma import __version__, errors
from vnuma.engine.access.inventory import of_site
from vnuma.engine.access.target import Target
from vnuma.engine.lease.supervision import is_alive, is_worked_on, refuse_if_alive
from vnuma.engine.preflight.findings import Permit
from vnuma.engine.preflight.plan import plan_all
from vnuma.engine.restore.restore import possibly_changed
from vnuma.engine.run.progress import Progress, progress_of
from vnuma.engine.run.start import PERMIT, StudyRequest, add_vms, client_of, refuse_unprepared, settle
from vnuma.errors import EnvironmentProblem, InputError, NotAtBaseline, StoreError, VmHeld, VnumaError
from vnuma.store import facts, leases, runs, sites
from vnuma.store.open import Store
from vnuma.store.place import Place
from vnuma.store.rows import Run, RunState, Site
from vnuma.store.tables import utc_now

_PERMIT = TypeAdapter(Permit)

GONE_AFTER = timedelta(minutes=10)
"""A site without a sign of life in the store for this long is no longer waited for."""


def refuse_file(place: Place, site: str) -> None:
    """Raise EnvironmentProblem for a store that another site cannot reach."""
    if place.is_sqlite:
        raise EnvironmentProblem(
            f"The site {site} needs a store that all sites reach, and {place} is a file.",
            fix="export VNUMA_STORE=postgresql://USER@HOST/vnuma: docs/store.md.",
        )


def part_at_site(store: Store, run: Run, site: str) -> Run:
    """The site's part of the run, which this process may work on.

    Raises InputError for an unknown site, EnvironmentProblem for a run of another version, VmHeld while
    another process works on the part, or while the run stops.
    """
    with store.read() as connection:
        runs.refuse_contract(connection, run)
        known = [part.name for part in sites.sites_of_run(connection, run.id)]
        part = runs.at_site(connection, run, site)
        stops = run.stop_requested is not None and is_worked_on(connection, run)
    if site not in known:
        raise InputError(
            f"{run.name} has no site {site}. Its sites: {', '.join(known) or 'none'}.",
            fix="The variable vnuma_site of a VM names its site, before the run is created.",
        )
    if run.product_version != __version__:
        raise EnvironmentProblem(
            f"{run.name} was created by vnuma {run.product_version}, and this is vnuma {__version__}.",
            fix="Install the same version at every site, and start a new run.",
        )
    refuse_if_alive(part)
    if stops:
        raise VmHeld(f"{run.name} is being stopped.", fix="Repeat this once it has stopped: vnuma status")
    return part


def add_site(store: Store, part: Run, asking: StudyRequest) -> None:
    """Check the site's VMs and add them to the run, at the first start of its part.

    Raises as `plan_all` and `refuse_unprepared` do, and InputError for other VMs than the run has there.
    """
    refuse_moved(store, part, asking.targets)
    site, own = str(part.site), of_site(asking.targets, part.site)
    if not own:
        raise InputError(
            f"No VM of the study is at {site} in {asking.inventory}.",
            fix=f"Give each of its VMs vnuma_site: {site}, as in the inventory of {part.name}.",
        )
    with store.read() as connection:
        if any(vm.site == site for vm in leases.vms_of_run(connection, part.id)):
            return
        stored = {fact.key: fact.value for fact in facts.facts_of_run(connection, part.id, PERMIT)}
    permit = _PERMIT.validate_python(stored)
    plans = plan_all(asking.study, own, permit, asking.inventory)
    refuse_unprepared(plans)
    client = client_of(own)
    with store.write() as connection:
        add_vms(connection, runs.lock_run(connection, part), asking, plans, client)


def refuse_moved(store: Store, run: Run, targets: Mapping[str, Target]) -> None:
    """Raise InputError for a VM that has another site in the inventory than in the run."""
    with store.read() as connection:
        known = {vm.name: vm.site for vm in leases.vms_of_run(connection, run.id)}
    for name, site in known.items():
        if name in targets and targets[name].site != site:
            there, now = site or "the controller", targets[name].site or "the controller"
            raise InputError(
                f"{name} belongs to {there} in {run.name}, and to {now} in the inventory.",
                fix=f"Give it vnuma_site as before, or: vnuma restore {name}, and start a new run.",
            )


def begin_site(store: Store, part: Run) -> bool:
    """Clear how the part ended before; returns False if nothing of it is left to do."""
    with store.write() as connection:
        seen = progress_of(connection, part.name).at(part.site)
        if seen.vms and seen.is_complete:
            return False
        if not is_worked_on(connection, runs.get_run(connection, part.name)):
            runs.request_stop(connection, part.id, None)
        sites.set_end(connection, part.id, str(part.site), None)
    return True


def end_of_part(problems: list[Exception]) -> Mapping[str, Any]:
    """How a site's part has ended, as stored."""
    return {"problems": [_document(problem) for problem in problems]}


def settle_if_last(store: Store, part: Run) -> None:
    """Set the run's state after a site's part, unless another process works on the run."""
    with store.read() as connection:
        worked_on = is_worked_on(connection, runs.get_run(connection, part.name))
    if not worked_on:
        settle(store, part)


def open_sites(store: Store, run: Run) -> None:
    """Wait, also again, for the sites that have cells left or VMs to restore."""
    with store.write() as connection:
        progress = progress_of(connection, run.name)
        if progress.sites:
            runs.set_run_state(connection, run.id, RunState.RUNNING)
        for site in progress.sites:
            if not site.alive and not progress.at(site.name).is_complete:
                sites.set_end(connection, run.id, site.name, None)


def waited_for(connection: Connection, run: Run, since: datetime) -> list[str]:
    """The sites whose parts have not ended. `since`: a sign of life before that is as old as that.

    A site where no process works is waited for `GONE_AFTER`, and not after a stop was requested.
    """
    stops = runs.get_run(connection, run.id).stop_requested is not None
    gone = utc_now() - GONE_AFTER
    return [
        site.name
        for site in sites.sites_of_run(connection, run.id)
        if is_alive(runs.at_site(connection, run, site.name))
        or (site.end is None and not stops and max(site.heartbeat_at or since, since) > gone)
    ]


def problems_of_sites(store: Store, run: Run) -> list[Exception]:
    """The problems with which parts have ended, and an error for each part that has not."""
    try:
        with store.read() as connection:
            progress = progress_of(connection, run.name)
            parts = sites.sites_of_run(connection, run.id)
            alive = {site.name for site in progress.sites if site.alive}
    except StoreError as error:
        return [possibly_changed("The VMs of other sites", error)]
    return [problem for site in parts for problem in _problems(progress, site, alive=site.name in alive)]


def _problems(progress: Progress, site: Site, *, alive: bool) -> list[Exception]:
    run, there = progress.run, progress.at(site.name)
    names = ", ".join(vm.name for vm in there.vms if not vm.at_baseline)
    if alive:
        return [
            NotAtBaseline(
                f"{site.name} is still at work on {names or 'its VMs'}; at its end it restores them.",
                fix=f"vnuma status shows how far it is. vnuma stop {run.name} stops it.",
            )
        ]
    if isinstance(site.end, dict):
        return [_error(site.name, problem) for problem in site.end.get("problems", ())]
    again = f"There: vnuma run --resume {run.name} --site {site.name}"
    if names:
        return [
            NotAtBaseline(
                f"{names} may not be at baseline: no process works at {site.name}.",
                fix=f"{again}. To restore only: vnuma restore --site {site.name}",
            )
        ]
    if run.stop_requested is not None or (there.vms and there.is_complete):
        return []
    return [EnvironmentProblem(f"No process works on {run.name} at {site.name}.", fix=again)]


def _document(error: Exception) -> dict[str, str | None]:
    """An error as text, with the class that has its exit code; a bug with its own message."""
    if isinstance(error, VnumaError):
        return {"kind": type(error).__name__, "what": error.what, "fix": error.fix}
    return {"kind": VnumaError.__name__, "what": f"{type(error).__name__}: {error}", "fix": None}


def _error(site: str, document: Mapping[str, Any]) -> VnumaError:
    """The error that a site has stored, naming the site."""
    kind = getattr(errors, str(document.get("kind")), None)
    known = kind if isinstance(kind, type) and issubclass(kind, VnumaError) else EnvironmentProblem
    error = known.__new__(known)
    VnumaError.__init__(error, f"{site}: {document.get('what')}", fix=document.get("fix"))
    return error
