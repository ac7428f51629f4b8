"""Which of SQL Server's two clocks times a query: chosen once a run, size and form, and recorded.

The message of SET STATISTICS TIME counts whole milliseconds. Of a short execution that is a coarse grid:
below 100 ms its rounding (SD 0.29 ms) would be 0.3% and more, as much as a boot varies.
sys.dm_exec_query_stats counts microseconds.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Literal

from vnuma.domain.study import COARSE_BELOW_MS, Study
from vnuma.engine.context import VmContext
from vnuma.errors import MeasurementFailed
from vnuma.sqlserver.execution import NO_STATISTICS, Execution
from vnuma.sqlserver.timing import Timing
from vnuma.store import facts
from vnuma.store.rows import Sample
from vnuma.workloads.registry import Query

Clock = Literal["messages", "query_stats"]
SCOPE = "clock"


def clock_of(
    context: VmContext, chosen: dict[str, Clock], query: Query, timing: Timing, ran: Execution
) -> Clock:
    """The query's clock; its first execution in the run decides, and every later one is timed alike."""
    key = f"{query.form}/{query.size}"
    if key not in chosen:
        chosen[key] = choose(context.study, timing, ran)
        with context.store.write() as write:
            facts.add_vm_facts(write, context.vm.id, SCOPE, {key: chosen[key]})
    return chosen[key]


def chosen_so_far(context: VmContext) -> dict[str, Clock]:
    """What earlier executions of this run on this VM decided."""
    with context.store.read() as connection:
        known = facts.facts_of_run(connection, context.run.id, SCOPE)
    return {
        fact.key: "query_stats" if fact.value == "query_stats" else "messages"
        for fact in known
        if fact.vm_id == context.vm.id
    }


def choose(study: Study, timing: Timing, ran: Execution) -> Clock:
    """As the study says; `auto` takes microseconds for short executions, where the server has them."""
    if study.workload.clock != "auto":
        return study.workload.clock
    short = timing.elapsed_ms < COARSE_BELOW_MS
    return "query_stats" if short and ran.elapsed_us is not None else "messages"


def timed_by(sample: Sample, clock: Clock, ran: Execution) -> Sample:
    """The sample with the times of its clock and all that is known of the execution.

    Raises MeasurementFailed when the clock has no time: the other one never takes its place.
    """
    known = {"clock": clock, **asdict(ran)}
    if clock == "messages":
        return replace(sample, execution=known)
    if ran.elapsed_us is None:
        raise MeasurementFailed(
            f"The execution has no time in microseconds: {ran.reason or NO_STATISTICS}.",
            fix="Does something evict plans? Else set workload.clock: messages.",
        )
    return replace(
        sample,
        elapsed_ms=ran.elapsed_us / 1000,
        cpu_ms=None if ran.cpu_us is None else ran.cpu_us / 1000,
        execution={**known, "message_elapsed_ms": sample.elapsed_ms, "message_cpu_ms": sample.cpu_ms},
    )
