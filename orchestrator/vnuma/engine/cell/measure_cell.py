"""Measure one boot: warm-ups, then the timed iterations of the study's workload, each stored as it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from vnuma.domain.study.study import Dataset, Study
from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.secrets import masked
from vnuma.engine.audit.log import PROGRAM, journal_of
from vnuma.engine.instance import sql_identity
from vnuma.engine.instance.sql_identity import client_boot, kernel_baseline, proven_boot, require_proven
from vnuma.engine.instance.sql_settings import PROCESS_AFFINITY, RESOURCE_POOL
from vnuma.engine.lease.attempt import add_facts, finish, say_step, step
from vnuma.engine.lease.baseline import refuse_foreign_changes, refuse_settings
from vnuma.engine.lease.hours import refuse_if_over
from vnuma.engine.lease.vcenter_retry import on_hypervisor
from vnuma.engine.lease.whose_vm import require_own_host
from vnuma.errors import (
    ConnectionDropped,
    Interrupted,
    MeasurementFailed,
    PlacementNotProven,
    SqlFailed,
    SqlUnreachable,
    undo_at_end,
)
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.failures import while_measuring
from vnuma.sqlserver.client.statistics_time import timed
from vnuma.sqlserver.database.dataset import drop
from vnuma.sqlserver.instance.server import read_server, xtp_pages_kb
from vnuma.sqlserver.instance.server_configuration import affinity_to, cpus_by_memory_node
from vnuma.store import facts, runs, samples
from vnuma.store.rows import Claim, Outcome, Sample, StopRequest
from vnuma.store.tables import utc_now
from vnuma.vsphere import counters, read
from vnuma.vsphere.connect import VmRef
from vnuma.vsphere.counters import Series
from vnuma.vsphere.session import Session
from vnuma.workloads.client import Client
from vnuma.workloads.interface import (
    Bench,
    Document,
    Query,
    SystemUnderTest,
    Workload,
    require_declared,
    workload_named,
)
from vnuma.workloads.shell import BOOT, Shell, require


@dataclass(frozen=True)
class CellSystem:
    """`workloads.interface.SystemUnderTest` for one attempt at a cell."""

    context: VmContext
    attempt: Claim

    @property
    def vm(self) -> str:
        return self.context.vm.name

    @property
    def vm_key(self) -> str:
        return self.context.vm.vm_key

    @property
    def arm(self) -> str:
        return self.attempt.arm

    @property
    def settings(self) -> Any:
        """The workload's settings for this arm."""
        return self.context.study.workload_of(self.attempt.arm)

    @property
    def dataset(self) -> Dataset:
        return self.context.study.dataset

    @property
    def server(self) -> SqlServer:
        return self.context.sql()

    @property
    def simulated(self) -> bool:
        """Whether the run's vCenter is the lab."""
        return self.context.run.simulated is not None

    @property
    def lease(self) -> int:
        """The fencing token."""
        return self.context.token

    @property
    def shell(self) -> Shell:
        return self.context.workload_shell()

    @cached_property
    def boot(self) -> str:
        """Asked of the store once: a teardown runs also while the store is away."""
        if self.context.study.workload.client_host:
            return client_boot(self.context, self.attempt)
        return proven_boot(self.context, self.attempt)

    @property
    def proven_guest_boot(self) -> str:
        """What `guest_boot` was when the guest was proven."""
        return proven_boot(self.context, self.attempt)

    def guest_boot(self) -> str:
        """What no two boots of the guest share: the kernel's number, or when its SQL Server started."""
        if "shell" not in self.context.study.workload.needs:
            with connect(self.server) as connection:
                return read_server(connection).start_time
        return require(self.context.shell(), f"cat {BOOT}", f"{self.vm}: reading its boot's number").strip()

    def masked(self, text: str) -> str:
        """The text without the values of this play's secrets."""
        return masked(text)

    def note(self, words: str) -> None:
        """Write a line of the audit log."""
        journal_of(self.context).note(PROGRAM, words)

    @contextmanager
    def reached(self) -> Iterator[None]:
        """Work in the guest: with its SQL Server proven, and with the target locked for programs."""
        context = self.context
        if "sql_server" in context.study.workload.needs:
            require_proven(context, self.attempt)
        if not context.study.workload.runs_programs:
            yield
            return
        with context.locked():
            context.fence()
            yield

    def client(self, name: str | None) -> Client:
        """The client machine. Raises InputError when the run's inventory does not have it."""
        return self.context.inventory.client(name)

    def say(self, words: str) -> None:
        """Show the cell's current step in the progress."""
        say_step(self.context, self.attempt, f"measure {words}")

    def record(self, scope: str, document: Mapping[str, object]) -> None:
        """Store facts of this attempt."""
        add_facts(self.context, self.attempt, scope, document)

    def remember(self, scope: str, document: Mapping[str, object]) -> None:
        """Store facts of this VM in this run."""
        with self.context.store.write() as write:
            facts.add_vm_facts(write, self.context.vm.id, scope, dict(document))

    def remembered(self, scope: str) -> Document:
        """The latest value of each of the VM's facts in that scope, in this run."""
        known = self.context.store.ask(facts.facts_of_run, self.context.run.id, scope)
        return {
            fact.key: fact.value
            for fact in known
            if fact.vm_id == self.context.vm.id and fact.attempt_id is None
        }

    def stop_if_asked(self) -> None:
        """Raise between iterations if a stop was requested or the allowed hours end. Samples are kept."""
        run = self.context.run.name
        refuse_if_over(self.context.study, run, utc_now())
        asked = self.context.store.ask(runs.get_run, run).stop_requested
        if asked is StopRequest.NOW:
            raise Interrupted(f"{run} was asked to stop.", fix=f"vnuma run --resume {run}")

    @contextmanager
    def process_affinity(self, wanted: str) -> Iterator[None]:
        """Limit SQL Server's process affinity inside the `with`, then restore the baseline's."""
        journal = journal_of(self.context)
        with PROCESS_AFFINITY.put_back(self.context.vm, self.server, journal):
            PROCESS_AFFINITY.switch(self.server, wanted, journal)
            yield

    def resource_pool(self, percent: int) -> None:
        """Create our pool with that share of memory and bind the study's database to it, up to the
        restore.
        """
        RESOURCE_POOL.hold(self.server, self.dataset.database, percent, journal_of(self.context))

    @contextmanager
    def kernel_settings(self) -> Iterator[None]:
        """Set the guest's kernel settings inside the `with`, then restore the baseline's, or this boot's."""
        wanted = self.settings.kernel_settings()
        now = sql_identity.read_kernel(self.shell, wanted) if wanted else {}
        known = kernel_baseline(self.context.vm) or now
        before = {name: value for name, value in known.items() if name in wanted}
        journal = journal_of(self.context)
        absent = sorted(set(wanted) - set(before))
        if absent:
            raise MeasurementFailed(f"{self.vm}: its kernel has no {', '.join(absent)}.", fix="Write keep.")
        refuse_settings(self.vm, sql_identity.foreign_kernel_changes(before, wanted, now))
        with undo_at_end(lambda: sql_identity.set_kernel(self.shell, before, wanted, journal)):
            sql_identity.set_kernel(self.shell, wanted, now, journal)
            yield


SCOPE = "control"
PROVEN_SHARE = 0.9
"""At least this share of the new tables' pages must be on the one node."""


@contextmanager
def placed(context: VmContext, attempt: Claim) -> Iterator[None]:
    """Keep data and work on two vNUMA nodes, then restore process affinity; does nothing for other arms.

    Raises PlacementNotProven, SqlFailed, SqlUnreachable.
    """
    if attempt.arm != context.study.control_arm:
        yield
        return
    with PROCESS_AFFINITY.put_back(context.vm, context.sql(), journal_of(context)):
        add_facts(context, attempt, SCOPE, {"placement": _place(context, attempt)})
        yield


def _place(context: VmContext, attempt: Claim) -> Document:
    """What was proven: pages (KB of growth, by memory node) on `data_node`, work only on `worker_node`."""
    server, journal, study = context.sql(), journal_of(context), context.study
    say_step(context, attempt, "measure control: placing the tables")
    with connect(server) as connection:
        nodes = cpus_by_memory_node(connection)
        if len(nodes) < 2:
            raise PlacementNotProven(
                f"{context.vm.name}: the guest has one vNUMA node, so no memory in it is remote.",
                fix="The control needs a reference arm with two or more nodes; or set design.control: none.",
            )
        data_node, worker_node = min(nodes), max(nodes)  # neighbours may share a host node
        drop(connection, study.dataset.database)
        empty = xtp_pages_kb(connection)
    PROCESS_AFFINITY.switch(server, affinity_to(nodes[data_node]), journal)
    system = CellSystem(context, attempt)
    system.record("dataset", workload_named(study.workload.name).prepare(system))
    with connect(server) as connection:
        grew = {node: kb - empty.get(node, 0) for node, kb in xtp_pages_kb(connection).items()}
    grown = {node: kb for node, kb in grew.items() if kb > 0}  # a node may release pages
    PROCESS_AFFINITY.switch(server, affinity_to(nodes[worker_node]), journal)
    share = grown.get(data_node, 0) / sum(grown.values()) if grown else 0.0
    if share < PROVEN_SHARE:
        raise PlacementNotProven(
            f"{context.vm.name}: {share * 100:.0f}% of the tables' pages are on vNUMA node "
            f"{data_node}, where they were made; proof needs {PROVEN_SHARE * 100:.0f}% ({grown} KB by "
            "node).",
            fix="Check the guest's free memory by node (sys.dm_os_memory_nodes).",
        )
    return {
        "data_node": data_node,
        "worker_node": worker_node,
        "grown_kb": grown,
        "share": share,
        "worker_cpus": nodes[worker_node],
    }


@dataclass(frozen=True)
class Turn:
    """The next iteration: its size, form and ordinal, and whether it is a warm-up."""

    size: int
    form: str
    iteration: int
    warmup: bool


def turns(study: Study) -> Iterator[Turn]:
    """All iterations of one boot in order: for each size and form the warm-ups, then the timed iterations."""
    for size in study.workload.sizes:
        for form in study.workload.forms:
            for iteration in range(1, study.design.warmups + 1):
                yield Turn(size, form, iteration, warmup=True)
            for iteration in range(1, study.design.iterations + 1):
                yield Turn(size, form, iteration, warmup=False)


def measure_cell(context: VmContext, attempt: Claim) -> int:
    """The step `measure` of a cell: settle the attempt and return how many samples were stored.

    Raises MeasurementFailed, ConnectionDropped, HostChanged or Interrupted, and what the workload raises;
    samples measured before that stay stored.
    """
    study, system = context.study, CellSystem(context, attempt)
    workload = workload_named(study.workload.name)
    with step(context, attempt, "measure"):
        with system.reached(), _unbroken(), placed(context, attempt):
            began = time.monotonic()
            if study.design.sentinel:
                _run_sentinel(system, workload.sentinel(system.settings, study.dataset))
            stored = _measure_turns(system, workload)
        _still_ours(context, attempt, time.monotonic() - began)
    finish(context, attempt, Outcome.VALID, None, None)
    return stored


def _measure_turns(system: CellSystem, workload: Workload) -> int:
    """Run every iteration of the workload, storing each at once; returns how many."""
    study, stored = system.context.study, 0
    with workload.bench(system) as bench:
        for turn in turns(study):
            system.stop_if_asked()
            kind, size = "warm-up" if turn.warmup else "iteration", study.workload.size_label(turn.size)
            system.say(f"{size}, {turn.form}, {kind} {turn.iteration}")
            measure_turn(system.context, system.attempt, bench, turn)
            stored += 1
    return stored


def measure_turn(context: VmContext, attempt: Claim, bench: Bench, turn: Turn) -> None:
    """Run one iteration and store it at once; a failure is a sample with a reason."""
    try:
        with _unbroken():
            reading = bench(turn.size, turn.form)
        require_declared(reading, context.study.workload, turn.form)
    except (MeasurementFailed, ConnectionDropped, SqlFailed) as error:
        known = error.execution if isinstance(error, MeasurementFailed) else None
        _store(context, attempt, turn, reason=str(error), execution=known)
        raise
    _store(context, attempt, turn, **{**vars(reading), "figures": dict(reading.figures or {}) or None})


@contextmanager
def _unbroken() -> Iterator[None]:
    """Report an unreachable SQL Server as a lost connection, since it was ready a moment ago."""
    try:
        yield
    except SqlUnreachable as error:
        raise while_measuring(error) from error


def _store(context: VmContext, attempt: Claim, turn: Turn, **result: Any) -> None:
    row = Sample(workload=context.study.workload.name, **vars(turn), at=utc_now(), **result)
    with context.store.write() as connection:
        samples.add_samples(connection, attempt.id, context.token, [row])


def _still_ours(context: VmContext, attempt: Claim, seconds: float) -> None:
    """At the end of a cell, check that the VM is unchanged and on the same host, or raise; store counters."""

    def look(session: Session, ref: VmRef, _tries: int) -> VmFacts:
        _record_counters(context, attempt, session, ref, seconds)
        return read.read_vm(session, ref)

    if vm := on_hypervisor(context, attempt, "measure", look):
        require_own_host(context.vm, vm.host_name)
        refuse_foreign_changes(context, vm)


SENTINEL = "sentinel"
EXECUTIONS = 3


def _run_sentinel(system: SystemUnderTest, query: Query | None) -> None:
    """Run it once discarded, then three times recorded; nothing for a workload without a sentinel.

    It only raises an alarm. It runs inside the arm, so correcting times by it would remove the effect. Raises
    what a measurement raises.
    """
    if query is None:
        return
    system.say("sentinel")
    with connect(system.server, system.dataset.database) as connection:
        times = [timed(connection, query, system.settings.timeout_s) for _ in range(1 + EXECUTIONS)][1:]
    system.record(
        SENTINEL,
        {
            "query": f"{query.workload} {query.size}, {query.form}",
            "elapsed_ms": [time.elapsed_ms for time in times],
            "cpu_ms": [time.cpu_ms for time in times],
            "client_ms": [time.client_ms for time in times],
        },
    )


COUNTERS = "counters"
_IDS = "counter_ids"
"""Facts that cache this vCenter's counter ids: its list is long, so a run reads it once."""


def _record_counters(
    context: VmContext, attempt: Claim, session: Session, ref: VmRef, seconds: float
) -> None:
    """Store what VM and host counted in the last `seconds`, or why there are no values."""
    found = counters.read_counters(session, ref, _ids(context, session), seconds)
    values = {of: _series(value) for of, value in found.items()}
    add_facts(context, attempt, COUNTERS, values)


def _ids(context: VmContext, session: Session) -> dict[str, int]:
    known = context.last_fact(_IDS)
    if known and isinstance(known.value, dict):
        return {str(name): int(number) for name, number in known.value.items()}
    ids = counters.counter_ids(session)
    with context.store.write() as write:
        facts.add_vm_facts(write, context.vm.id, _IDS, {"ids": ids})
    return ids


def _series(found: dict[str, Series] | str) -> dict[str, object]:
    if isinstance(found, str):
        return {"not_evaluated": found}
    return {name: asdict(series) for name, series in found.items()}
