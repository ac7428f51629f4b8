"""The controller's side of a run over several sites: start, follow and restart nodes' work.

The store has a site's progress and outcome; the mesh only transports the work. A site that cannot be seen
keeps working, and is followed again later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from vnuma.engine.access.inventory import nodes_of
from vnuma.engine.access.target import Target
from vnuma.engine.lease.supervision import BEAT_S, SILENT_AFTER, is_alive
from vnuma.engine.mesh import control as mesh
from vnuma.engine.mesh.request import error_from, request_about
from vnuma.engine.restore.restore import possibly_changed
from vnuma.engine.run.oversight import Elsewhere, Work
from vnuma.engine.run.progress import progress_of
from vnuma.engine.sites.planning import by_node, control_of_mesh, refuse_unsendable
from vnuma.errors import EnvironmentProblem, InputError, NotAtBaseline, StoreError, VmHeld, VnumaError
from vnuma.store import runs, sites, vms
from vnuma.store.open import Store
from vnuma.store.rows import Run, RunState, Site
from vnuma.store.types import iso, utc_now

GONE_AFTER = timedelta(minutes=10)
"""A site without a heartbeat in the store for this long is no longer followed."""

HEARD_AFTER = timedelta(seconds=3 * BEAT_S)
"""A living process of a node that is seen again has sent a heartbeat by then."""

LAUNCHES = 3
"""How often a site's work is started if its process dies."""

_LAST_WORDS_S = 30
"""Time limit for reading the final output of an ended unit, in seconds."""


@dataclass
class _Part:
    """A node's part of the run, as far as this process knows it."""

    node: str
    targets: Mapping[str, Target]
    launches: int = 0
    unit: str | None = None
    """The work unit that this process submitted last."""
    seen_since: datetime | None = None
    """Since when this process has seen the node without interruption."""
    silent: list[str] = field(default_factory=list)
    """Units that were replaced because they gave no sign of life."""
    over: bool = False
    problems: list[Exception] = field(default_factory=list)

    def end(self, *problems: Exception) -> None:
        self.over = True
        self.problems += problems


class SitesAtWork(Elsewhere):
    """The nodes' work on a run."""

    def __init__(self, store: Store, run: Run, targets: Mapping[str, Target], inventory: Path) -> None:
        self._store, self._run, self._inventory = store, run, inventory
        self._parts = [_Part(node, part) for node, part in by_node(targets).items()]
        self._control = control_of_mesh(nodes_of(targets))
        with store.read() as connection:
            self._study = runs.get_study(connection, run.study_id).digest

    def start(self) -> None:
        """Start each node that has work left; follow one that is already working.

        Raises EnvironmentProblem, before starting any, for a node that the mesh does not reach.
        """
        waiting = self._parts
        try:
            waiting = self._waiting()
            for part in waiting:
                refuse_unsendable(part.node, part.targets)
                mesh.require_seen(self._control, part.node)
            with self._store.write() as connection:
                runs.set_run_state(connection, self._run.id, RunState.RUNNING)
                kept = sites.units_at_work(connection)
            mesh.forget_ended(self._control, kept)
            for part in waiting:
                self._submit(part)
        except Exception:
            for part in waiting:
                if not (part.launches or part.over):  # not submitted: nobody may wait for it
                    left = self._unended(part)  # takes precedence over the reason for not starting
                    part.end(*([left] if isinstance(left, NotAtBaseline) else []))
            raise

    def _waiting(self) -> list[_Part]:
        """Parts that nobody works on and that have cells left or VMs to restore."""
        idle = [part for part in self._parts if not is_alive(self._of(part))]
        with self._store.read() as connection:
            progress = progress_of(connection, self._run.name)
        for part in idle:
            left = progress.at(part.node).vms
            if all(vm.done == vm.total and vm.at_baseline for vm in left):
                part.end()
        return [part for part in idle if not part.over]

    def look(self) -> None:
        """Update the parts' states, and restart the work of one whose process has died."""
        if not self.is_at_work():
            return
        try:
            seen = mesh.nodes_seen(self._control)
        except EnvironmentProblem:  # the local daemon fails: the store still has the progress
            seen = frozenset()
        for part in self._parts:
            if not part.over:
                self._look_at(part, is_seen=part.node in seen)

    def is_at_work(self) -> bool:
        """Whether any part has not ended, as far as known."""
        return not all(part.over for part in self._parts)

    def problems(self) -> list[Exception]:
        """Problems of the parts; for one still working, that its VMs may not be at their baseline."""
        at_work = [self._unended(part) for part in self._parts if not part.over]
        return [*(problem for part in self._parts for problem in part.problems), *at_work]

    def _unended(self, part: _Part) -> Exception:
        """The error for a part that has not ended, as far as known."""
        try:
            return self._at_work(part) if is_alive(self._of(part)) else self._left(part)
        except StoreError as error:
            return possibly_changed(", ".join(part.targets), error)

    def _at_work(self, part: _Part) -> NotAtBaseline:
        with self._store.read() as connection:
            stops = runs.get_run(connection, self._run.name).stop_requested is not None
        run = self._run.name
        asked, stop = (", and was asked to stop", "") if stops else ("", f" To stop it: vnuma stop {run}")
        return NotAtBaseline(
            f"{part.node} is still at work on {', '.join(part.targets)}{asked}; "
            "at its end it restores what it works on.",
            fix=f"vnuma status shows how far it is, vnuma run --resume {run} follows it.{stop}",
        )

    def _of(self, part: _Part) -> Run:
        return self._store.ask(lambda connection: runs.at_site(connection, self._run, part.node))

    def _site(self, part: _Part) -> Site:
        known = self._store.ask(lambda connection: sites.sites_of_run(connection, self._run.id))
        return next(site for site in known if site.node == part.node)

    def _submit(self, part: _Part) -> None:
        """Submit a part's work. If that fails, the part ends and the others continue."""
        with self._store.write() as connection:
            sites.begin(connection, self._run.id, part.node)
        try:
            unit = mesh.submit(self._control, part.node, self._request(part))
        except EnvironmentProblem as error:
            part.end(self._not_begun(part, error))
            return
        part.launches, part.unit = part.launches + 1, unit
        self._store_unit(part, self._site(part))

    def _store_unit(self, part: _Part, site: Site) -> None:
        """Store the work unit, also later where the store refused it: a resumed run asks for it."""
        if part.unit and site.unit is None:
            with self._store.write() as connection:
                sites.set_unit(connection, self._run.id, part.node, part.unit)

    def _not_begun(self, part: _Part, error: VnumaError) -> Exception:
        """The error for a node that gets no work; VMs away from their baseline take precedence."""
        left = self._left(part, error)
        return left if isinstance(left, NotAtBaseline) else error

    def _request(self, part: _Part) -> dict[str, Any]:
        run = self._run
        about = request_about(part.node, part.targets, self._inventory)
        return {**about, "ask": "run", "run": [run.name, iso(run.created_at)], "study": self._study}

    def _look_at(self, part: _Part, *, is_seen: bool) -> None:
        site = self._site(part)
        self._note(site, is_seen=is_seen)
        self._store_unit(part, site)
        part.seen_since = (part.seen_since or utc_now()) if is_seen else None
        # A node out of reach has no news, and a hanging daemon would delay us again.
        died = is_seen and self._unit_is_over(site.unit or part.unit)
        site = self._site(part)  # read after the unit, which stores its outcome before it ends
        if site.end is not None and site.supervisor_pid is None:
            self._ended(part, site)
        elif died:
            told = self._last_words(part, str(site.unit))
            mesh.release(self._control, str(site.unit))
            self._died(part, site, told)
        elif part.seen_since and _is_silent(site, part.seen_since):
            part.silent.append(str(site.unit))  # a release would kill it, maybe while it restores a VM
            self._died(part, site, None)
        elif utc_now() - (_latest(site) or self._run.created_at) > GONE_AFTER:
            part.end(self._left(part))

    def _note(self, site: Site, *, is_seen: bool) -> None:
        """Store since when the mesh does not reach the node."""
        if is_seen != (site.unseen_since is None):
            with self._store.write() as connection:
                sites.set_unseen(connection, site.run_id, site.node, None if is_seen else utc_now())

    def _unit_is_over(self, unit: str | None) -> bool:
        try:
            return unit is not None and mesh.unit_state(self._control, unit).over
        except EnvironmentProblem:
            return False

    def _ended(self, part: _Part, site: Site) -> None:
        told = site.end if isinstance(site.end, dict) else {}
        part.end(*(error_from(part.node, problem) for problem in told.get("problems", ())))
        for unit in filter(None, (*part.silent, site.unit)):
            mesh.release(self._control, unit)

    def _died(self, part: _Part, site: Site, told: VnumaError | None) -> None:
        """Handle a unit that ended without an outcome: it refused to start, was killed, or lost the store.

        A process that is only silent loses its VMs to the next one, as any frozen process does.
        """
        if isinstance(told, VmHeld):
            return  # an earlier unit's process works on the part: the store will have its outcome
        refused = told is not None and site.supervisor_pid is None
        if not refused and part.launches < LAUNCHES:
            self._submit(part)
        else:
            part.end(told if told and refused else self._left(part, told))

    def _last_words(self, part: _Part, unit: str) -> VnumaError | None:
        """The error that a unit ended with, from its output or from the daemon."""
        try:
            answer = mesh.answer_of(self._control, part.node, unit, _LAST_WORDS_S)
        except EnvironmentProblem as error:
            return error
        return error_from(part.node, answer["error"]) if "error" in answer else None

    def _left(self, part: _Part, why: VnumaError | None = None) -> Exception:
        """The error for a node whose process has ended, whatever sign of life it gave just before."""
        with self._store.read() as connection:
            progress = progress_of(connection, self._run.name).at(part.node)
        away = [vm.name for vm in progress.vms if not vm.at_baseline]
        site = self._site(part)
        sign = _latest(site)
        since = f"its last sign was at {sign.astimezone():%H:%M:%S}" if sign else "it left no sign"
        told = f" ({why.what.rstrip('.')})" if why else ""
        if away:
            return NotAtBaseline(
                f"{', '.join(away)} may not be at baseline: {part.node} has stopped working; {since}{told}.",
                fix=f"When {part.node} is back: vnuma run --resume {self._run.name}, or vnuma restore "
                f"{' '.join(away)}. If it is gone: docs/sites.md (If a node is gone).",
            )
        return EnvironmentProblem(
            f"{part.node} has not started its part: {since}{told}.", fix=f"vnuma doctor --site {part.node}"
        )


def divided(work: Work) -> tuple[Work, Elsewhere]:
    """What is worked on from here, and the nodes' work.

    The run keeps the nodes that it was started with. Raises InputError where there is no mesh here, or a VM
    has another node in the inventory now.
    """
    store, run, targets = work.store, work.run, work.targets
    with store.read() as connection:
        known = {vm.name: vm.node for vm in vms.vms_of_run(connection, run.id)}
    now = nodes_of(targets)
    for name, node in known.items():
        if now.get(name) != node:
            raise InputError(
                f"{name} is worked on by {node or 'the controller'} in {run.name}, and by "
                f"{now.get(name) or 'the controller'} in {work.inventory}.",
                fix=f"Give it the run's node again, or: vnuma restore {name}, and start a new run.",
            )
    here = replace(work, targets={name: target for name, target in targets.items() if name not in now})
    return here, SitesAtWork(store, run, targets, work.inventory) if now else Elsewhere()


def _is_silent(site: Site, seen_since: datetime) -> bool:
    """Whether the part's process counts as dead although its unit has not ended.

    After a power failure nothing writes the unit's end, and the daemon reports it as running for ever. Behind
    a cut link the process may live, so it is given time for a heartbeat.
    """
    now, sign = utc_now(), _latest(site)
    return sign is not None and now - sign > SILENT_AFTER and now - seen_since > HEARD_AFTER


def _latest(site: Site) -> datetime | None:
    """The time of the latest news of a site's work."""
    return max(filter(None, (site.heartbeat_at, site.unit_at)), default=None)
