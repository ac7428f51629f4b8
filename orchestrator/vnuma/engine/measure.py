"""Measure one boot: the plan once, warm-ups, then the timed iterations, each stored as it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from vnuma.domain.facts import VmFacts
from vnuma.domain.study import Study
from vnuma.engine import counters
from vnuma.engine.attempt import Attempt, finish, step
from vnuma.engine.clock import Clock, chosen_so_far, clock_of, timed_by
from vnuma.engine.context import VmContext
from vnuma.engine.control import placed
from vnuma.engine.identity import require_own_host
from vnuma.engine.persist import on_vsphere
from vnuma.engine.sentinel import run_sentinel
from vnuma.engine.somebody import refuse_somebodys
from vnuma.errors import ConnectionDropped, Interrupted, MeasurementFailed, PrivilegeMissing
from vnuma.sqlserver import execution, plan, topology, waits
from vnuma.sqlserver.connect import connect
from vnuma.sqlserver.odbc import pyodbc
from vnuma.sqlserver.timing import Timing, timed
from vnuma.store import attempts, facts, runs, samples
from vnuma.store.rows import Outcome, Sample, StopRequest
from vnuma.store.types import utc_now
from vnuma.vsphere import read
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.session import Session
from vnuma.workloads.registry import Query, queries


@dataclass(frozen=True)
class Turn:
    """One execution to come: which query, which iteration, warm-up or timed."""

    query: Query
    iteration: int
    warmup: bool

    @property
    def words(self) -> str:
        """For progress: `1000 x 1000, client, iteration 2`."""
        kind = "warm-up" if self.warmup else "iteration"
        return f"{self.query.size:,} x {self.query.size:,}, {self.query.form}, {kind} {self.iteration}"


@dataclass(frozen=True)
class _Bench:
    """One boot's connection, what is asked of each form's executions, and the clocks chosen so far."""

    connection: pyodbc.Connection
    probes: dict[str, execution.Probe]
    clocks: dict[str, Clock]


def turns(study: Study, arm: str) -> Iterator[Turn]:
    """Every execution of one boot of an arm in order: the warm-ups of a query, then its timed iterations."""
    for query in queries(study.workload_of(arm)):
        for iteration in range(1, study.design.warmups + 1):
            yield Turn(query, iteration, warmup=True)
        for iteration in range(1, study.design.iterations + 1):
            yield Turn(query, iteration, warmup=False)


def measure_cell(context: VmContext, attempt: Attempt) -> int:
    """The step `measure` of a cell: settles the attempt and returns how many samples were stored.

    Raises MeasurementFailed, ConnectionDropped, HostChanged or Interrupted; what was measured up to
    then stays in the store with the attempt.
    """
    stored = 0
    with step(context, attempt, "measure"):
        with (
            placed(context, attempt),
            connect(context.sql(), context.study.dataset.database) as connection,
        ):
            if context.study.design.sentinel:
                run_sentinel(context, attempt, connection)
            hashes = _store_plans(context, attempt, connection)
            known = execution.known_statistics(connection)
            began = time.monotonic()
            bench = _Bench(
                connection,
                {form: execution.prepare(found, known) for form, found in hashes.items()},
                chosen_so_far(context),
            )
            for turn in turns(context.study, attempt.arm):
                _stop_if_asked(context)
                _announce(context, attempt, turn)
                _measure(context, attempt, bench, turn)
                stored += 1
            pages = topology.xtp_pages_kb(connection)
        _still_ours(context, attempt, time.monotonic() - began)
        with context.store.write() as write:
            facts.add_attempt_facts(write, attempt.id, context.token, "memory", {"xtp_pages_kb": pages})
    finish(context, attempt, Outcome.VALID, None, None)
    return stored


def _measure(context: VmContext, attempt: Attempt, bench: _Bench, turn: Turn) -> None:
    """Time one execution and store it before anything else; a failure is a sample with a reason."""
    query, connection = turn.query, bench.connection
    try:
        before = waits.session_waits(connection)
        timing = timed(
            connection,
            query.sql,
            expected_rows=query.expected_rows,
            rows_from=query.rows_from,
            timeout_s=context.study.workload.timeout_s,
            setup=query.setup,
            cleanup=query.cleanup,
        )
        spent = waits.difference(before, waits.session_waits(connection))
        ran = execution.read(connection, bench.probes[query.form], timing.elapsed_ms)
        row = timed_by(
            _row(turn, timing, spent, None), clock_of(context, bench.clocks, query, timing, ran), ran
        )
    except (MeasurementFailed, ConnectionDropped) as error:
        _store(context, attempt, _row(turn, None, None, str(error)))
        raise
    _store(context, attempt, row)


def _row(
    turn: Turn, timing: Timing | None, spent: dict[str, dict[str, int]] | None, reason: str | None
) -> Sample:
    return Sample(
        workload=turn.query.workload,
        size=turn.query.size,
        form=turn.query.form,
        iteration=turn.iteration,
        warmup=turn.warmup,
        reason=reason,
        cpu_ms=timing.cpu_ms if timing else None,
        elapsed_ms=timing.elapsed_ms if timing else None,
        parse_cpu_ms=timing.parse_cpu_ms if timing else None,
        parse_elapsed_ms=timing.parse_elapsed_ms if timing else None,
        client_ms=timing.client_ms if timing else None,
        rows=timing.rows if timing else None,
        waits=spent,
        at=utc_now(),
    )


def _store(context: VmContext, attempt: Attempt, row: Sample) -> None:
    with context.store.write() as connection:
        samples.add_samples(connection, attempt.id, context.token, [row])


def _store_plans(context: VmContext, attempt: Attempt, connection: pyodbc.Connection) -> dict[str, str]:
    """The actual plan of every query, from one untimed run each of the smallest size: once per cell.

    Returns the hash of each form's query, which its sizes share; empty where there was no plan.
    """
    smallest = min(context.study.workload.sizes)
    hashes = {}
    for query in queries(context.study.workload_of(attempt.arm)):
        if query.size == smallest:
            document = _plan_document(connection, query)
            hashes[query.form] = str(document.get("query_hash", ""))
            with context.store.write() as write:
                facts.add_attempt_facts(write, attempt.id, context.token, "plan", {query.form: document})
    return hashes


def _plan_document(connection: pyodbc.Connection, query: Query) -> dict[str, object]:
    """A plan is evidence beside the timing: without it the timing stands, and the reason is kept."""
    try:
        return asdict(plan.actual_plan(connection, query.sql, setup=query.setup, cleanup=query.cleanup))
    except (MeasurementFailed, PrivilegeMissing) as error:
        return {"not_evaluated": error.what}


def _announce(context: VmContext, attempt: Attempt, turn: Turn) -> None:
    with context.store.write() as connection:
        attempts.set_step(connection, attempt.id, context.token, f"measure {turn.words}")


def _stop_if_asked(context: VmContext) -> None:
    """Between iterations a run can be stopped; its samples so far are kept with the attempt."""
    with context.store.read() as connection:
        asked = runs.get_run(connection, context.run.name).stop_requested
    if asked is StopRequest.NOW:
        raise Interrupted(
            f"{context.run.name} was asked to stop.", fix=f"vnuma run --resume {context.run.name}"
        )


def _still_ours(context: VmContext, attempt: Attempt, seconds: float) -> None:
    """At a cell's end the VM is where, and what, it was: else what was measured does not count.

    What vSphere counted meanwhile is stored.
    """

    def look(session: Session, ref: VmRef, _tries: int) -> VmFacts:
        counters.record(context, attempt, session, ref, seconds)
        return read.read_vm(session, ref)

    vm = on_vsphere(context, attempt, "measure", look)
    require_own_host(context.vm, vm.host_name)
    refuse_somebodys(context, vm)
