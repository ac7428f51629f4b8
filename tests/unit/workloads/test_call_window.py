"""One window of calls: figures, and every reason why it does not count."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.errors import MeasurementFailed
from vnuma.logs.guest_tools import MachineTime, machine_busy, machine_time
from vnuma.sqlserver.instance.call_counters import Endpoint, SchedulerTimes, ServerCounts, is_call_of
from vnuma.workloads.call_volume.callers import Count, Edge, Window, headroom, require_trustworthy
from vnuma.workloads.call_volume.settings import is_saturated

START = datetime(2026, 1, 1, tzinfo=UTC)


def edge(second: float, calls: int, *, executions: int | None = None, **server: object) -> Edge:
    """Two callers, each with a tenth of a CPU; the machine half idle; 10 microseconds of CPU for a call."""
    count = Count(calls, ((0.1 * second, second), (0.1 * second, second)))
    seen = ServerCounts(
        at=START + timedelta(seconds=second),
        ms_ticks=20_000 + round(second * 1000),
        cpu_ms=round(calls / 100),
        executions=calls if executions is None else executions,
        requests=calls + 3,
        schedulers=SchedulerTimes(round(second * 1000), {0: round(second * 900), 1: round(second * 100)}),
    )
    machine = MachineTime(round(second * 200), round(second * 100))
    return Edge(count, replace(seen, **server), count, second, machine)  # type: ignore[arg-type]


def window(after: Edge | None = None, before: Edge | None = None) -> Window:
    """Ten seconds, 100,000 calls."""
    return Window(2, before or edge(1, 5_000), after or edge(11, 105_000))


def test_the_rate_is_the_servers_count_over_the_servers_clock() -> None:
    """All figures of a window in which everything agrees."""
    seen = window()
    require_trustworthy(seen, judge_client=True)

    assert seen.rate == pytest.approx(10_000)
    assert seen.figures() == pytest.approx(
        {
            "server CPU per call": 10.0,
            "client's own count": 10_000.0,
            "Batch Requests/sec": 10_000.0,
            "client CPU headroom": 50.0,
            "busiest scheduler": 90.0,
            "other schedulers, mean": 10.0,
        }
    )


def test_one_scheduler_has_no_others_to_be_compared_with() -> None:
    """A figure that is not there, and no zero."""
    alone = [
        edge(at, calls, schedulers=SchedulerTimes(round(at * 1000), {0: round(at * 900)}))
        for at, calls in ((1, 5_000), (11, 105_000))
    ]
    figures = window(before=alone[0], after=alone[1]).figures()
    assert figures["busiest scheduler"] == pytest.approx(90)
    assert "other schedulers, mean" not in figures


@pytest.mark.parametrize(
    ("busiest", "others", "saturated"),
    [(95, 10, True), (95, 47.5, True), (95, 60, False), (89, 1, False), (100, 100, False)],
)
def test_one_cpu_is_saturated_when_it_works_and_the_others_hardly(
    busiest: float, others: float, saturated: bool
) -> None:
    """Nearly all the time, and twice as much as the others at least."""
    assert is_saturated(busiest, others) is saturated


def test_what_a_version_does_not_count_is_absent_and_no_zero() -> None:
    """Before 2016 SP2 nothing is known of schedulers."""
    seen = window(edge(11, 105_000, schedulers=None))
    assert seen.schedulers is None
    assert "busiest scheduler" not in seen.figures()


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (edge(11, 105_000, executions=105_003), "counted 100,003 calls, the callers between 100,000"),
        (edge(11, 105_000, executions=104_000), "counted 99,000 calls"),
        (edge(11, 105_000, executions=5_000), "counted no call within the window"),
        (edge(11, 105_000, requests=120_000), r"Other clients sent 14,997 requests .*15%"),
        (
            edge(11, 105_000, ms_ticks=36_000),
            "clock was set during the window: 10.00 s passed by it, 15.00 s",
        ),
        (replace(edge(11, 105_000), machine=MachineTime(2200, 150)), "The client had 3% of its CPU left"),
    ],
)
def test_a_window_that_is_not_what_it_seems_does_not_count(after: Edge, why: str) -> None:
    """Each reason in words."""
    with pytest.raises(MeasurementFailed, match=why):
        require_trustworthy(window(after), judge_client=True)


def test_on_the_lab_the_client_is_not_judged() -> None:
    """A call takes modelled time there, whatever the client needs."""
    tired = replace(edge(11, 105_000), machine=MachineTime(2200, 150))
    require_trustworthy(window(tired), judge_client=False)


@given(slack=st.integers(0, 1000), off=st.integers(-3000, 3000))
def test_counts_agree_exactly_within_what_the_callers_leave_open(slack: int, off: int) -> None:
    """An edge's later count may be higher than the earlier one; two calls may be in progress."""
    after = edge(11, 105_000, executions=105_000 + off, requests=105_003 + off)
    later = replace(after, later=replace(after.later, calls=after.later.calls + slack))
    agrees = -2 <= off <= slack + 2

    if agrees:
        require_trustworthy(window(later), judge_client=True)
    else:
        with pytest.raises(MeasurementFailed):
            require_trustworthy(window(later), judge_client=True)


@given(machine=st.none() | st.floats(0, 1), each=st.lists(st.floats(0, 1.2), max_size=5))
def test_headroom_is_a_percentage_of_the_busiest(machine: float | None, each: list[float]) -> None:
    """Between nothing and all, never more than the machine or any caller had left."""
    left = headroom(machine, each)
    assert 0 <= left <= 100
    assert all(left <= 100 * (1 - min(used, 1.0)) + 1e-9 for used in [machine or 0.0, *each])


def test_the_machines_time_is_read_where_the_system_tells_it() -> None:
    """The first line of /proc/stat, iowait being idle; None elsewhere."""
    assert machine_time("cpu  100 0 50 800 50 0 0 0 0 0") == MachineTime(1000, 850)
    assert machine_time(None) is None
    assert machine_busy(MachineTime(0, 0), MachineTime(1000, 850)) == pytest.approx(0.15)
    assert machine_busy(None, MachineTime(1, 1)) is None


@pytest.mark.parametrize(
    ("sent", "is_call"),
    [
        (("RPC Event", "dbo.noop;1"), True),
        (("RPC Event", "vnuma_study.dbo.noop;1"), True),
        (("RPC Event", "[dbo].[noop];1"), True),
        (("RPC Event", "sp_prepexec;1"), False),
        (("RPC Event", "sp_execute;1"), False),
        (("Language Event", "EXEC dbo.noop 1"), False),
        (("No Event", ""), False),
    ],
)
def test_only_a_call_by_name_is_a_remote_procedure_call(sent: tuple[str, str], is_call: bool) -> None:
    """Prepared statements and batches are something else, and cost something else."""
    assert is_call_of("noop", sent) is is_call


@pytest.mark.parametrize(
    ("where", "same"),
    [
        (Endpoint("TCP", "10.0.0.5", "10.0.0.9"), False),
        (Endpoint("TCP", "10.0.0.9", "10.0.0.9"), True),
        (Endpoint("TCP", "127.0.0.1", "127.0.0.1"), True),
        (Endpoint("Shared memory", "<local machine>", ""), True),
    ],
)
def test_a_caller_in_the_guest_itself_is_recognised(where: Endpoint, same: bool) -> None:
    """Then no network card takes part."""
    assert where.same_host is same
