"""A run's progress, read from the store: shown by the progress display, `status` and AWX."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Literal, TypeVar

from sqlalchemy import Connection

from vnuma.domain.study.order import seconds_in_all
from vnuma.domain.study.study import Study
from vnuma.domain.vm.facts import HostKey
from vnuma.engine.access.context import study_of
from vnuma.engine.access.places import home_folder, store_url
from vnuma.engine.cell.dataset import databases_left
from vnuma.engine.lease.supervision import BEAT_S, is_alive
from vnuma.engine.lease.vcenter_retry import RESTORING, RETRY, is_repeated, retried_now
from vnuma.engine.run.next_cell import needs_a_person, permanent_failure, without_result
from vnuma.store import attempts, facts, leases, runs
from vnuma.store.cells import busy_hosts, cells_of_run, unrestored, used_up_cells
from vnuma.store.open import Store, default_url, open_store
from vnuma.store.place import parse_place
from vnuma.store.rows import AttemptLine, Cell, CellState, Fact, Outcome, Run, RunState, Site, Vm
from vnuma.store.runs import at_site
from vnuma.store.sites import sites_of_run
from vnuma.store.tables import utc_now

_LATE_AFTER = timedelta(seconds=3 * BEAT_S)


@dataclass(frozen=True)
class SiteProgress:
    """A site's part of a run. `words`: what is unusual there, or how the part ended; None if all is well."""

    name: str
    alive: bool
    words: str | None = None


def _site(connection: Connection, run: Run, site: Site) -> SiteProgress:
    alive = is_alive(at_site(connection, run, site.name))
    words = None if run.state is RunState.FINISHED else _words(run, site, alive=alive)
    return SiteProgress(site.name, alive, words)


def _words(run: Run, site: Site, *, alive: bool) -> str | None:
    sign = site.heartbeat_at
    if alive:
        late = sign is not None and utc_now() - sign > _LATE_AFTER
        return f"last sign in the store at {sign.astimezone():%H:%M:%S}" if sign and late else None
    if isinstance(site.end, dict):
        problems = site.end.get("problems", ())
        return f"ended: {problems[0]['what']}" if problems else None
    start = f"there: vnuma run --resume {run.name} --site {site.name}"
    if sign is None:
        return f"nobody works there; {start}"
    return f"no sign in the store since {sign.astimezone():%H:%M:%S}; {start}"


_STEPS = {
    "shutdown": "shutdown and reconfigure",
    "power_on": "power-on, waiting for Tools",
    "guest_ready": "waiting for SQL Server",
}
_OfVm = TypeVar("_OfVm", Cell, AttemptLine)
CellWord = Literal["valid", "now", "pending", "tried again", "given up", "left out"]


@dataclass(frozen=True)
class CellProgress:
    """A cell and its state; `left out`: the study's stopping rule ended before it."""

    block: int
    label: str
    word: CellWord


@dataclass(frozen=True)
class VmProgress:
    """One VM: its cells, and its present step."""

    name: str
    host: str
    host_key: HostKey
    done: int
    valid: int
    total: int
    label: str | None
    block: int | None
    """Of the present attempt, else of the latest; None before the first."""
    step: str | None
    since: datetime | None
    repeated: int
    last: tuple[tuple[str, str], ...]
    """(label, outcome as text) of the latest ended attempts, newest first."""
    note: str | None
    """The latest attempt that did not count: block, arm, outcome and reason."""
    left_s: float | None
    at_baseline: bool
    restore_words: str | None
    restore_failed: bool = False
    """Its restore was tried and failed: a person has to look."""
    ended_by: str | None = None
    """Why the stopping rule ended before its last block; the figures above exclude the cells left out."""
    note_detail: str | None = None
    """What happened in that attempt, and what to do, as its error said."""
    waits_for: str | None = None
    """Who is measured on its host meanwhile, or why the store is away; None while it need not wait."""
    lasting: AttemptLine | None = None
    """The latest attempt, if any further one would fail alike until a person acts."""
    databases_left: tuple[str, ...] = ()
    """What the run could not remove: its database, and why. Not the VM's own settings."""
    cells: tuple[CellProgress, ...] = ()
    """Every cell in the planned order."""
    site: str | None = None
    """Its site; None for the controller's own."""

    @property
    def step_words(self) -> str:
        """The present step as text; after a colon, why it is being retried."""
        waiting = f"waiting: {self.waits_for}" if self.waits_for else "waiting"
        name, colon, trouble = (self.step or waiting).partition(": ")
        return _STEPS.get(name, name) + colon + trouble


@dataclass(frozen=True)
class Progress:
    """A whole run."""

    run: Run
    vms: tuple[VmProgress, ...]
    blocks: int
    take_turns: bool = True
    """Whether the VMs of one host are measured one after the other."""
    labels: tuple[str, ...] = ()
    """Labels of its cells, in the order of the study's arms."""
    retries: int = 0
    """How often vSphere calls were retried: it was away, or temporarily unable."""
    sites: tuple[SiteProgress, ...] = ()
    """The sites whose VMs are worked on there."""

    def at(self, site: str | None) -> Progress:
        """Of the VMs of this site; None: the controller's own."""
        return replace(
            self,
            vms=tuple(vm for vm in self.vms if vm.site == site),
            sites=tuple(part for part in self.sites if part.name == site),
        )

    @property
    def is_worked_on(self) -> bool:
        """Whether a process supervises the run, or a site's part of it."""
        return is_alive(self.run) or any(site.alive for site in self.sites)

    @property
    def unplanned(self) -> tuple[str, ...]:
        """Sites that have not added their VMs yet."""
        return tuple(site.name for site in self.sites if all(vm.site != site.name for vm in self.vms))

    @property
    def lacks_cells(self) -> bool:
        """Whether a cell of any site has no valid attempt."""
        return self.valid < self.total or bool(self.unplanned)

    @property
    def has_cells_left(self) -> bool:
        """Whether a cell of any site may be attempted once more."""
        return self.done < self.total or bool(self.unplanned)

    @property
    def is_complete(self) -> bool:
        """Whether every cell of every site is valid and every VM is at its baseline."""
        return not self.lacks_cells and all(vm.at_baseline for vm in self.vms)

    @property
    def total(self) -> int:
        return sum(vm.total for vm in self.vms)

    @property
    def valid(self) -> int:
        """Cells with a valid attempt."""
        return sum(vm.valid for vm in self.vms)

    @property
    def done(self) -> int:
        """Cells that need no further attempt."""
        return sum(vm.done for vm in self.vms)

    @property
    def left_s(self) -> float | None:
        """Seconds left for the busiest host, whose VMs take turns; None until a cell was timed."""
        known = [(vm.host_key, vm.left_s) for vm in self.vms if vm.left_s is not None]
        return seconds_in_all(known, take_turns=self.take_turns) if known else None


def progress_of_part(store: Store, run: Run) -> Progress:
    """Read the progress of the run, or of the site's part of it."""
    with store.read() as connection:
        whole = progress_of(connection, run.name)
        part = runs.at_site(connection, whole.run, run.site)
    return replace(whole.at(run.site), run=part) if run.site else whole


def progress_of(connection: Connection, run_name: str) -> Progress:
    """Read a run's progress."""
    run = runs.get_run(connection, run_name)
    every = attempts.lines_of_run(connection, run.id)
    planned = cells_of_run(connection, run.id)
    study = study_of(connection, run)
    failed = used_up_cells(connection, run.id, study.limits.attempts_per_cell)
    usual = _usual(every)
    sites = tuple(_site(connection, run, site) for site in sites_of_run(connection, run.id))
    alive: dict[str | None, bool] = {site.name: site.alive for site in sites}
    alive[None] = is_alive(run)
    plan_of, past_of = _by_vm(planned), _by_vm(every)
    retries = facts.facts_of_run(connection, run.id, RETRY)
    last_retry = {fact.vm_id: fact for fact in retries}
    left = databases_left(connection, run.id)
    every_vm = leases.vms_of_run(connection, run.id)
    take_turns = study.design.neighbours == "take_turns"
    busy = busy_hosts(connection, every_vm, exclusive_host=take_turns)
    rows = []
    for vm in every_vm:
        waits = busy.get(vm.id) if alive.get(vm.site, alive[None]) else None
        seen = _vm(
            vm,
            plan_of[vm.id],
            past_of[vm.id],
            failed,
            usual,
            waits.reason if waits and waits.vm_name != vm.name else None,
            (left[vm.id],) if vm.id in left else (),
            asked=run.stop_requested is not None,
        )
        idle = not (seen.at_baseline or seen.step)
        why = _restore_waits(connection, vm, last_retry.get(vm.id)) if idle else None
        rows.append(restoring(seen, why) if why else seen)
    kept = (cell.block for cell in planned if cell.state != "skipped")
    return Progress(
        run,
        tuple(rows),
        max(kept, default=0),
        take_turns=take_turns,
        labels=_labels(study, planned),
        retries=sum(map(is_repeated, retries)),
        sites=sites,
    )


def _restore_waits(connection: Connection, vm: Vm, last: Fact | None) -> str | None:
    """Why its restore is retried or waits; None once another process has its lease, as of a resumed run."""
    why = retried_now(last, RESTORING)
    lease = leases.get_lease(connection, vm.vm_key) if why else None
    return why if last and lease and last.at >= lease.taken_at else None


def _by_vm(rows: Iterable[_OfVm]) -> defaultdict[int, list[_OfVm]]:
    by_vm: defaultdict[int, list[_OfVm]] = defaultdict(list)
    for row in rows:
        by_vm[row.vm_id].append(row)
    return by_vm


def _vm(
    vm: Vm,
    planned: list[Cell],
    past: list[AttemptLine],
    failed: set[int],
    usual: float | None,
    waits_for: str | None,
    databases_left: tuple[str, ...],
    *,
    asked: bool,
) -> VmProgress:
    now = next((attempt for attempt in reversed(past) if attempt.ended_at is None), None)
    ended = sorted(
        (a for a in past if a.ended_at is not None), key=lambda a: (a.ended_at, a.id), reverse=True
    )
    ended_by = _ended_by(planned)
    words = ("given up" if cell.id in failed else _CELL_WORDS[cell.state] for cell in planned)
    grid = tuple(
        CellProgress(cell.block, cell.label, word) for cell, word in zip(planned, words, strict=True)
    )
    planned = [cell for cell in planned if cell.state != "skipped"]
    done = sum(cell.state == "valid" or cell.id in failed for cell in planned)
    trouble, latest = _trouble(ended, past, asked=asked), now or next(iter(ended), None)
    # The words of a step that is being retried or waits, nobody knows how long, follow a colon.
    waits = now is not None and ": " in (now.step or "")
    detail = vm.restore_detail if isinstance(vm.restore_detail, dict) else {}
    return VmProgress(
        name=vm.name,
        host=vm.esxi_host,
        host_key=vm.host_key,
        done=done,
        valid=sum(cell.state == "valid" for cell in planned),
        total=len(planned),
        label=now.label if now else None,
        block=latest.block if latest else None,
        step=now.step if now else None,
        since=now.step_at if now else None,
        repeated=sum(attempt.number > 1 for attempt in past),
        last=tuple((attempt.label, _outcome(attempt, past, failed)) for attempt in ended[:3]),
        note=_note(trouble, past, failed),
        left_s=None if waits else _left(_usual(ended) or usual, now, len(planned) - done),
        at_baseline=vm.at_baseline,
        restore_words=detail.get("words"),
        restore_failed=vm.restore_outcome is not None and not vm.restore_outcome.settled,
        ended_by=ended_by,
        note_detail=trouble.detail if trouble else None,
        waits_for=waits_for if now is None and done < len(planned) else None,
        lasting=permanent_failure(past),
        databases_left=databases_left,
        cells=grid,
        site=vm.site,
    )


def _labels(study: Study, planned: Sequence[Cell]) -> tuple[str, ...]:
    place = {arm: number for number, arm in enumerate(study.labels)}
    arms = {cell.label: cell.arm for cell in planned}
    return tuple(sorted(arms, key=lambda label: (place.get(arms[label], len(place)), label)))


def _ended_by(planned: Sequence[Cell]) -> str | None:
    """Why a rule ended the run before its last block; arms that left earlier have reasons of their own."""
    first: dict[str, Cell] = {}
    for cell in planned:
        if cell.state == "skipped":
            first.setdefault(cell.label, cell)
    if not first or len(first) < len({cell.label for cell in planned}):
        return None
    return max(first.values(), key=lambda cell: cell.block).reason


_CELL_WORDS: dict[CellState, CellWord] = {
    CellState.VALID: "valid",
    CellState.CLAIMED: "now",
    CellState.PENDING: "pending",
    CellState.FAILED: "tried again",
    CellState.SKIPPED: "left out",
}


def restoring(vm: VmProgress, why: str = "") -> VmProgress:
    """The VM shown as being restored, with why that is retried, whatever its last attempt did."""
    if (vm.step or "").startswith(RESTORING):
        return vm
    step = f"{RESTORING}: {why}" if why else RESTORING
    left_s = None if why or vm.done < vm.total else vm.left_s
    return replace(vm, label=None, step=step, since=None, waits_for=None, left_s=left_s)


def waiting_for_store(seen: Progress, why: str) -> Progress:
    """What was last seen of a run, with why its VMs wait for the store."""
    waiting = (
        vm
        if vm.at_baseline and vm.done == vm.total
        else replace(vm, step=None, since=None, waits_for=why, left_s=None)
        for vm in seen.vms
    )
    return replace(seen, vms=tuple(waiting))


def _trouble(ended: list[AttemptLine], past: list[AttemptLine], *, asked: bool) -> AttemptLine | None:
    """The latest attempt that did not count.

    A stop is left out for whoever asked for it, and once its cell has succeeded.
    """
    for attempt in ended:
        no_news = attempt.reason == "stop_requested" and (asked or not _is_last(attempt, past))
        if attempt.outcome != "valid" and not no_news:
            return attempt
    return None


def _note(trouble: AttemptLine | None, past: list[AttemptLine], failed: set[int]) -> str | None:
    if trouble is None:
        return None
    reason = "" if trouble.reason == trouble.outcome else f", {trouble.reason}".replace("_", " ")
    what = f"block {trouble.block}, {trouble.label}: {trouble.outcome}{reason}"
    if _is_last(trouble, past):
        return f"{what}; given up" if trouble.cell_id in failed else what
    return f"{what}; tried again"


def _outcome(attempt: AttemptLine, past: list[AttemptLine], failed: set[int]) -> str:
    """An attempt's outcome; without a result, what happens to its cell while the run continues."""
    if not without_result(attempt):
        return str(attempt.outcome)
    if not _is_last(attempt, past):
        return f"{attempt.outcome}, tried again"
    if attempt.cell_id in failed:
        return f"{attempt.outcome}, given up"
    return f"{attempt.outcome}, {'waits for a person' if needs_a_person(attempt) else 'tried again'}"


def _is_last(attempt: AttemptLine, past: list[AttemptLine]) -> bool:
    return all(other.id <= attempt.id for other in past if other.cell_id == attempt.cell_id)


def _usual(attempts: Sequence[AttemptLine]) -> float | None:
    """The median duration of valid attempts, in seconds."""
    durations = [attempt.seconds for attempt in attempts if attempt.outcome is Outcome.VALID]
    return median(durations) if durations else None


def _left(each: float | None, now: AttemptLine | None, cells_left: int) -> float | None:
    """Cells left times the usual duration, less the present attempt's time so far."""
    if each is None:
        return None
    used = (utc_now() - now.started_at).total_seconds() if now else 0.0
    return max(0.0, cells_left * each - min(used, each))


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
        Away(vm.name, run.name, is_alive(run), vm.restore_outcome) for vm, run in unrestored(connection)
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
        sites=tuple(f"{site.name}: {site.words}" for site in progress.sites if site.words),
        vm_names=tuple(vm.name for vm in progress.vms if vm.site is None),
    )


def _event(progress: Progress) -> str:
    vms = progress.vms
    busy = "; ".join(" ".join(filter(None, (vm.label, vm.step_words))) for vm in vms if vm.step)
    waiting = "; ".join(f"{vm.name} waits: {vm.waits_for}" for vm in vms if vm.waits_for)
    ruled = [vm.ended_by for vm in vms if vm.ended_by]
    restored = [vm.restore_words.splitlines()[0] for vm in vms if vm.restore_words]
    return busy or waiting or (ruled or restored or ["not begun"])[-1]
