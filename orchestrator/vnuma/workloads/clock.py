"""Which of SQL Server's two clocks times a query: chosen once per run, size and form, and recorded.

SET STATISTICS TIME counts whole milliseconds, too coarse for short executions: below 100 ms its rounding (SD
0.29 ms) would be 0.3% or more, as much as a boot varies. sys.dm_exec_query_stats counts microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Literal

from vnuma.domain.workloads.settings import COARSE_BELOW_MS, ClockChoice
from vnuma.errors import MeasurementFailed
from vnuma.sqlserver.client.execution import NO_STATISTICS, Execution
from vnuma.sqlserver.client.timing import Timing
from vnuma.workloads.bench import Reading, Site
from vnuma.workloads.query import Query

Clock = Literal["messages", "query_stats"]
SCOPE = "clock"


def clock_of(
    site: Site, wanted: ClockChoice, chosen: dict[str, Clock], query: Query, timing: Timing, ran: Execution
) -> Clock:
    """The query's clock; its first execution in the run decides for all later ones."""
    key = f"{query.form}/{query.size}"
    if key not in chosen:
        chosen[key] = choose(wanted, timing, ran)
        site.remember(SCOPE, {key: chosen[key]})
    return chosen[key]


def chosen_so_far(site: Site) -> dict[str, Clock]:
    """The choices of earlier executions of this run on this VM."""
    known = site.remembered(SCOPE)
    return {key: "query_stats" if value == "query_stats" else "messages" for key, value in known.items()}


def choose(wanted: ClockChoice, timing: Timing, ran: Execution) -> Clock:
    """The study's choice; `auto` takes microseconds for short executions, if the server has them."""
    if wanted != "auto":
        return wanted
    short = timing.elapsed_ms < COARSE_BELOW_MS
    return "query_stats" if short and ran.elapsed_us is not None else "messages"


def timed_by(
    timing: Timing, clock: Clock, ran: Execution, waits: Mapping[str, Mapping[str, int]] | None = None
) -> Reading:
    """The reading with its clock's times and everything known about the execution.

    Raises MeasurementFailed when the clock has no time: the other one never replaces it.
    """
    reading = Reading(**{**vars(timing), "waits": waits, "execution": {"clock": clock, **asdict(ran)}})
    if clock == "messages":
        return reading
    if ran.elapsed_us is None:
        raise MeasurementFailed(
            f"The execution has no time in microseconds: {ran.reason or NO_STATISTICS}.",
            fix="Check whether something evicts plans. Otherwise set workload.clock: messages.",
        )
    messages = {"message_elapsed_ms": timing.elapsed_ms, "message_cpu_ms": timing.cpu_ms}
    return replace(
        reading,
        elapsed_ms=ran.elapsed_us / 1000,
        cpu_ms=None if ran.cpu_us is None else ran.cpu_us / 1000,
        execution={**(reading.execution or {}), **messages},
    )
