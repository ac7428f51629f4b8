"""Ready means: a login, a start after the power-on, the database ONLINE, a quiet guest."""

from __future__ import annotations

import time

import pytest

from tests.sqlserver.support import HurriedClock, LabFactory, server_of
from tests.support.lab import LabHandle
from vnuma.errors import LoginRefused, SqlTimeout
from vnuma.sqlserver.connect import SqlServer
from vnuma.sqlserver.ready import QuietRule, wait_ready

NO_QUIET = QuietRule(cpu_percent=10, for_s=0, timeout_s=1)
AN_HOUR = 3600.0


def test_a_server_that_started_after_the_power_on_is_ready(server: SqlServer) -> None:
    """Its uptime is shorter than the time since the power-on."""
    ready = wait_ready(server, database=None, powered_on_s=AN_HOUR, deadline_s=30, quiet=NO_QUIET)

    assert 0 <= ready.uptime_s < AN_HOUR
    assert ready.attempts == 1


def test_a_server_that_never_went_down_is_not_ready(shared_lab: LabHandle, server: SqlServer) -> None:
    """A login alone proves nothing: the old server answers until it is shut down."""
    clock = HurriedClock()
    shared_lab.wait_until(lambda: _uptime(server) > 2, what="an uptime of 2 s")

    with pytest.raises(SqlTimeout, match="waiting for a start after the power-on"):
        wait_ready(server, database=None, powered_on_s=-AN_HOUR, deadline_s=20, quiet=NO_QUIET, clock=clock)

    assert sum(clock.naps) == pytest.approx(20)


def _uptime(server: SqlServer) -> float:
    return wait_ready(server, database=None, powered_on_s=AN_HOUR, deadline_s=30, quiet=NO_QUIET).uptime_s


def test_a_database_that_is_not_there_is_waited_for(server: SqlServer) -> None:
    """At the deadline the error names the stage and the database."""
    with pytest.raises(SqlTimeout, match="waiting for the database: database nowhere does not exist"):
        wait_ready(
            server,
            database="nowhere",
            powered_on_s=AN_HOUR,
            deadline_s=5,
            quiet=NO_QUIET,
            clock=HurriedClock(),
        )


def test_an_unreachable_server_is_asked_less_and_less_often_until_the_deadline(shared_lab: LabHandle) -> None:
    """The pauses double up to five seconds, and the last one ends at the deadline."""
    clock = HurriedClock()

    with pytest.raises(SqlTimeout, match=r"waiting for a login: .*does not answer"):
        wait_ready(
            server_of(shared_lab, port=1),
            database=None,
            powered_on_s=0,
            deadline_s=20,
            quiet=NO_QUIET,
            clock=clock,
        )

    assert clock.naps == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 3.65])


def test_refused_logins_are_retried_and_only_then_reported(lab: LabFactory) -> None:
    """A starting server refuses logins for a while; a wrong password does so at the deadline too."""
    running = lab(faults=[{"kind": "login_refused", "vm": "sql16", "boot": 1}])
    running.wait_for("sql_listening")
    clock = HurriedClock()

    with pytest.raises(LoginRefused, match="It was so for 10 s after the boot"):
        wait_ready(
            server_of(running),
            database=None,
            powered_on_s=AN_HOUR,
            deadline_s=10,
            quiet=NO_QUIET,
            clock=clock,
        )

    assert len(clock.naps) > 3


def test_without_a_rule_quietness_is_not_evaluated(server: SqlServer) -> None:
    """The record says so; it does not say that the guest was quiet."""
    ready = wait_ready(server, database=None, powered_on_s=AN_HOUR, deadline_s=30, quiet=NO_QUIET)

    assert ready.quietness.quiet is None
    assert ready.quietness.note.startswith("not evaluated")


def test_an_idle_guest_becomes_quiet(server: SqlServer) -> None:
    """An idle server stays below the limit for as long as the rule says."""
    began = time.monotonic()
    rule = QuietRule(cpu_percent=50, for_s=1, timeout_s=30)

    quietness = wait_ready(server, database=None, powered_on_s=AN_HOUR, deadline_s=30, quiet=rule).quietness

    assert quietness.quiet is True
    assert quietness.sql_cpu_percent is not None
    assert time.monotonic() - began >= 1


def test_a_guest_that_is_never_quiet_is_measured_all_the_same(server: SqlServer) -> None:
    """After the timeout the boot goes on, and the record says that the guest was busy."""
    rule = QuietRule(cpu_percent=0, for_s=1, timeout_s=1)

    quietness = wait_ready(server, database=None, powered_on_s=AN_HOUR, deadline_s=30, quiet=rule).quietness

    assert quietness.quiet is False
    assert quietness.note.startswith("busy")
