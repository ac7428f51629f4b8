"""Measure one boot: warm-ups, then the timed iterations of the study's workload, each stored as it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from vnuma.domain.study.study import Study
from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.access.context import VmContext
from vnuma.engine.cell.positive_control import placed
from vnuma.engine.cell.system_under_test import CellSystem
from vnuma.engine.lease.attempt import Attempt, add_facts, finish, step
from vnuma.engine.lease.foreign_changes import refuse_foreign_changes
from vnuma.engine.lease.identity import require_own_host
from vnuma.engine.lease.vcenter_retry import on_hypervisor
from vnuma.errors import ConnectionDropped, MeasurementFailed, SqlFailed, SqlUnreachable
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.failures import while_measuring
from vnuma.sqlserver.client.timing import timed
from vnuma.store import facts, samples
from vnuma.store.rows import Outcome, Sample
from vnuma.store.types import utc_now
from vnuma.vsphere import counters, read
from vnuma.vsphere.connect import VmRef
from vnuma.vsphere.counters import Series
from vnuma.vsphere.session import Session
from vnuma.workloads.interface import (
    Bench,
    Query,
    Reading,
    SystemUnderTest,
    Workload,
    require_declared,
    workload_named,
)


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


def measure_cell(context: VmContext, attempt: Attempt) -> int:
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
            stored = measure_turns(system, workload)
        _still_ours(context, attempt, time.monotonic() - began)
    finish(context, attempt, Outcome.VALID, None, None)
    return stored


def measure_turns(system: CellSystem, workload: Workload) -> int:
    """Run every iteration of the workload, storing each at once; returns how many."""
    study, stored = system.context.study, 0
    with workload.bench(system) as bench:
        for turn in turns(study):
            system.stop_if_asked()
            system.say(turn_words(study, turn))
            measure_turn(system.context, system.attempt, bench, turn)
            stored += 1
    return stored


def turn_words(study: Study, turn: Turn) -> str:
    """Progress text: `1,000 x 1,000, client, iteration 2`."""
    kind = "warm-up" if turn.warmup else "iteration"
    return f"{study.workload.size_label(turn.size)}, {turn.form}, {kind} {turn.iteration}"


def measure_turn(context: VmContext, attempt: Attempt, bench: Bench, turn: Turn) -> None:
    """Run one iteration and store it at once; a failure is a sample with a reason."""
    name = context.study.workload.name
    try:
        with _unbroken():
            reading = bench.run(turn.size, turn.form)
        require_declared(reading, context.study.workload, turn.form)
    except (MeasurementFailed, ConnectionDropped, SqlFailed) as error:
        _store(context, attempt, _failed(name, turn, str(error)))
        raise
    _store(context, attempt, _measured(name, turn, reading))


@contextmanager
def _unbroken() -> Iterator[None]:
    """Report an unreachable SQL Server as a lost connection, since it was ready a moment ago."""
    try:
        yield
    except SqlUnreachable as error:
        raise while_measuring(error) from error


def _measured(workload: str, turn: Turn, reading: Reading) -> Sample:
    return Sample(
        workload=workload,
        size=turn.size,
        form=turn.form,
        iteration=turn.iteration,
        warmup=turn.warmup,
        at=utc_now(),
        **{**vars(reading), "figures": dict(reading.figures or {}) or None},
    )


def _failed(workload: str, turn: Turn, reason: str) -> Sample:
    return Sample(workload, turn.size, turn.form, turn.iteration, turn.warmup, utc_now(), reason=reason)


def _store(context: VmContext, attempt: Attempt, row: Sample) -> None:
    with context.store.write() as connection:
        samples.add_samples(connection, attempt.id, context.token, [row])


def _still_ours(context: VmContext, attempt: Attempt, seconds: float) -> None:
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
    context: VmContext, attempt: Attempt, session: Session, ref: VmRef, seconds: float
) -> None:
    """Store what VM and host counted in the last `seconds`, or why there are no values."""
    found = counters.read_counters(session, ref, _ids(context, session), seconds)
    values = {of: _series(value) for of, value in found.items()}
    add_facts(context, attempt, COUNTERS, values)


def _ids(context: VmContext, session: Session) -> dict[str, int]:
    run, vm = context.run, context.vm
    known = context.store.ask(lambda connection: facts.last_of_vm(connection, run.id, vm.vm_key, _IDS))
    if known and isinstance(known.value, dict):
        return {str(name): int(number) for name, number in known.value.items()}
    ids = counters.counter_ids(session)
    with context.store.write() as write:
        facts.add_vm_facts(write, vm.id, _IDS, {"ids": ids})
    return ids


def _series(found: dict[str, Series] | str) -> dict[str, object]:
    if isinstance(found, str):
        return {"not_evaluated": found}
    return {name: asdict(series) for name, series in found.items()}
