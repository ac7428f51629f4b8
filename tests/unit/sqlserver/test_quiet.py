"""CPU use of guest and server."""

from __future__ import annotations

import pytest

from vnuma.sqlserver.instance.ready import Reading, parse_record, sql_cpu_percent

RECORD = (
    '<Record id="7" type="RING_BUFFER_SCHEDULER_MONITOR" time="123456"><SchedulerMonitorEvent><SystemHealth>'
    "<ProcessUtilization>1</ProcessUtilization><SystemIdle>{idle}</SystemIdle>"
    "</SystemHealth></SchedulerMonitorEvent></Record>"
)


def test_the_servers_share_is_of_all_cpus() -> None:
    """One CPU of four, fully used for a second, is 25 percent."""
    before = Reading(ms_ticks=10_000, start_ms_ticks=1_000, process_cpu_ms=500, cpus=4)
    after = Reading(ms_ticks=11_000, start_ms_ticks=1_000, process_cpu_ms=1_500, cpus=4)

    assert sql_cpu_percent(before, after) == pytest.approx(25)
    assert after.uptime_s == pytest.approx(10)


def test_two_readings_of_the_same_moment_say_nothing() -> None:
    """No time passed, so there is no share; it is not zero."""
    reading = Reading(10_000, 1_000, 500, 4)

    assert sql_cpu_percent(reading, reading) is None


@pytest.mark.parametrize(("idle", "busy"), [("97", 3.0), ("0", 100.0), ("100", 0.0)])
def test_the_guests_share_is_what_is_not_idle(idle: str, busy: float) -> None:
    """SystemIdle is of the whole guest, everything in it included."""
    assert parse_record(RECORD.format(idle=idle)) == pytest.approx(busy)


@pytest.mark.parametrize("record", ["", "<Record/>", RECORD.format(idle="101"), RECORD.format(idle="x")])
def test_a_record_without_a_sensible_figure_is_not_evaluated(record: str) -> None:
    """No figure means no statement about the guest."""
    assert parse_record(record) is None
