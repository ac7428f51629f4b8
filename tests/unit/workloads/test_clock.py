"""The clock of a query: microseconds for short executions, and never a mixture."""

from __future__ import annotations

import pytest

from vnuma.errors import MeasurementFailed
from vnuma.sqlserver.client.execution import Execution
from vnuma.sqlserver.client.statistics_time import Timing
from vnuma.workloads.query_bench import choose, timed_by

KNOWN = Execution(3, 3, 0, elapsed_us=4_321, cpu_us=4_000, plan_hash="0xAB", dop=1, grant_kb=0)
UNKNOWN = Execution(3, 3, 0, reason="not kept")


def timing(elapsed_ms: int = 4) -> Timing:
    """What the message said."""
    return Timing(cpu_ms=elapsed_ms, elapsed_ms=elapsed_ms, client_ms=elapsed_ms + 1.0, rows=400)


@pytest.mark.parametrize(
    ("elapsed_ms", "ran", "clock"),
    [(4, KNOWN, "query_stats"), (100, KNOWN, "messages"), (4, UNKNOWN, "messages")],
)
def test_short_executions_are_timed_in_microseconds(elapsed_ms: int, ran: Execution, clock: str) -> None:
    """Where the server has them; from 100 ms on whole milliseconds are fine enough."""
    assert choose("auto", timing(elapsed_ms), ran) == clock


def test_the_study_may_say_which() -> None:
    """Then nothing is chosen."""
    assert choose("messages", timing(4), KNOWN) == "messages"


def test_microseconds_replace_the_times_and_the_message_is_kept() -> None:
    """The store has both clocks; the analysis sees one."""
    made = timed_by(timing(), "query_stats", KNOWN, None)

    assert (made.elapsed_ms, made.cpu_ms) == (4.321, 4.0)
    assert isinstance(made.execution, dict)
    assert made.execution["clock"] == "query_stats"
    assert (made.execution["message_elapsed_ms"], made.execution["plan_hash"]) == (4.0, "0xAB")


def test_a_clock_without_a_time_is_a_failed_sample() -> None:
    """The other clock never takes its place: arms would be timed differently."""
    with pytest.raises(MeasurementFailed):
        timed_by(timing(), "query_stats", UNKNOWN, None)
