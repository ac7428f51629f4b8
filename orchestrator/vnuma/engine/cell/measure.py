"""Measure one boot: warm-ups, then the timed iterations of the study's workload, each stored as it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from vnuma.domain.study.study import Study
from vnuma.domain.vm.facts import VmFacts
from vnuma.engine.cell import counters
from vnuma.engine.cell.positive_control import placed
from vnuma.engine.cell.sentinel import run_sentinel
from vnuma.engine.cell.site import CellSite
from vnuma.engine.instance.sql_identity import require_proven
from vnuma.engine.lease.attempt import Attempt, finish, step
from vnuma.engine.lease.context import VmContext
from vnuma.engine.lease.foreign_change_check import refuse_foreign_changes
from vnuma.engine.lease.identity import require_own_host
from vnuma.engine.lease.vcenter_retry import on_vsphere
from vnuma.errors import ConnectionDropped, MeasurementFailed, SqlFailed, SqlUnreachable
from vnuma.sqlserver.client.connection_lost import while_measuring
from vnuma.store import samples
from vnuma.store.rows import Sample
from vnuma.store.states import Outcome
from vnuma.store.types import utc_now
from vnuma.vsphere import read
from vnuma.vsphere.refs import VmRef
from vnuma.vsphere.session import Session
from vnuma.workloads.bench import Bench, MachineWorkload, Reading, Workload, require_declared
from vnuma.workloads.find import workload_named


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

    Raises MeasurementFailed, ConnectionDropped, HostChanged or Interrupted; samples measured before that stay
    stored.
    """
    study, site = context.study, CellSite(context, attempt)
    workload = workload_named(study.workload.name)
    with step(context, attempt, "measure"):
        require_proven(context, attempt)
        with _unbroken(), placed(context, attempt):
            began = time.monotonic()
            if study.design.sentinel:
                run_sentinel(site, workload.sentinel(site.settings, study.dataset))
            stored = measure_turns(site, workload)
        _still_ours(context, attempt, time.monotonic() - began)
    finish(context, attempt, Outcome.VALID, None, None)
    return stored


def measure_turns(site: CellSite, workload: Workload | MachineWorkload) -> int:
    """Run every iteration of the workload, storing each at once; returns how many."""
    study, stored = site.context.study, 0
    with workload.bench(site) as bench:
        for turn in turns(study):
            site.stop_if_asked()
            site.say(turn_words(study, turn))
            measure_turn(site.context, site.attempt, bench, turn)
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
        counters.record(context, attempt, session, ref, seconds)
        return read.read_vm(session, ref)

    vm = on_vsphere(context, attempt, "measure", look)
    require_own_host(context.vm, vm.host_name)
    refuse_foreign_changes(context, vm)
