"""All runs at a glance, read from the store."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from vnuma.engine.access.places import home_folder, store_url
from vnuma.engine.lease.supervision import is_alive
from vnuma.engine.run.progress import Progress, progress_of
from vnuma.store import baselines, runs
from vnuma.store.open import default_url, open_store
from vnuma.store.place import parse_place
from vnuma.store.rows import Run


@dataclass(frozen=True)
class RunLine:
    """One run in one line. `event` is the latest event, as text."""

    run: str
    state: str
    simulated: str | None
    alive: bool
    valid: int
    total: int
    vms: str
    left_s: float | None
    retries: int
    event: str
    sites: tuple[str, ...] = ()
    """What its sites last said, where that is unusual."""
    vm_names: tuple[str, ...] = ()
    """The VMs that the controller works on, as a play of its own names them."""


@dataclass(frozen=True)
class Away:
    """A VM that is not at its baseline; `in_use`: its run is alive. `outcome`: of its restore."""

    vm: str
    run: str
    in_use: bool
    outcome: str | None = None


@dataclass(frozen=True)
class Overview:
    """Runs, oldest first, and VMs that are not at their baseline."""

    runs: tuple[RunLine, ...]
    not_at_baseline: tuple[Away, ...]
    progress: Progress | None = None
    """Of the one run that was asked for."""


def overview(url: str | None, only: str | None = None) -> Overview:
    """Read the store. There are no runs before the first one has created the default store.

    Raises InputError for an unknown run, StoreError for any other store that does not exist.
    """
    address = store_url(url)
    if only is None and address == default_url(home_folder()) and not parse_place(address).path.exists():
        return Overview((), ())
    store = open_store(address, create=False)
    with store.read() as connection:
        wanted = [runs.get_run(connection, only)] if only else _listed(connection)
        progresses = [progress_of(connection, run.name) for run in wanted]
        away = vms_away(connection)
    return Overview(tuple(map(line_of, progresses)), away, progresses[0] if only else None)


def _listed(connection: Connection) -> list[Run]:
    """The runs of studies, and those of `vnuma contract` that are active: these measure nothing."""
    measuring = runs.measuring_runs(connection)
    known = {run.id for run in measuring}
    return [run for run in runs.list_runs(connection) if run.id in known or is_alive(run)]


def vms_away(connection: Connection) -> tuple[Away, ...]:
    """VMs of this site's runs that are not at their baseline, or still leased."""
    return tuple(
        Away(vm.name, run.name, is_alive(run), vm.restore_outcome)
        for vm, run in baselines.unrestored(connection)
    )


def line_of(progress: Progress) -> RunLine:
    names = [vm.name for vm in progress.vms]
    run = progress.run
    return RunLine(
        run=run.name,
        state=str(run.state),
        simulated=run.simulated,
        alive=progress.is_worked_on,
        valid=progress.valid,
        total=progress.total,
        vms=names[0] if len(names) == 1 else f"{len(names)} VMs",
        left_s=progress.left_s if progress.is_worked_on else None,
        retries=progress.retries,
        event=_event(progress),
        sites=tuple(f"{site.node}: {site.words}" for site in progress.sites if site.words),
        vm_names=tuple(vm.name for vm in progress.vms if vm.node is None),
    )


def _event(progress: Progress) -> str:
    busy = [vm for vm in progress.vms if vm.step]
    if busy:
        return "; ".join(" ".join(filter(None, (vm.label, vm.step_words))) for vm in busy)
    waiting = [f"{vm.name} waits: {vm.waits_for}" for vm in progress.vms if vm.waits_for]
    if waiting:
        return "; ".join(waiting)
    ruled = [vm.ended_by for vm in progress.vms if vm.ended_by]
    if ruled:
        return ruled[-1]
    restored = [vm.restore_words for vm in progress.vms if vm.restore_words]
    if restored:
        return restored[-1].splitlines()[0]
    return "not begun"
