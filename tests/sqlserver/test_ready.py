"""Ready means: a login, a start after the power-on, the database ONLINE, a quiet guest."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from tests.sqlserver.support import HurriedClock, LabFactory, listening, server_of
from tests.support.lab import LabHandle
from vnuma.domain.study.study import Quiet
from vnuma.errors import AccountRefused, DatabaseMissing, LoginRefused, SqlTimeout
from vnuma.logins import Logins
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.instance.ready import Ready, wait_ready

NO_QUIET = Quiet(cpu_percent=10, for_s=0, timeout_s=1)
AN_HOUR = 3600.0


def ready(server: SqlServer, **changed: Any) -> Ready:
    """The server, once it is ready."""
    asked = {"database": None, "powered_on_s": AN_HOUR, "deadline_s": 30, "quiet": NO_QUIET, **changed}
    return wait_ready(server, **asked)


def test_a_server_that_started_after_the_power_on_is_ready(server: SqlServer) -> None:
    """Its uptime is shorter than the time since the power-on."""
    found = ready(server)

    assert 0 <= found.uptime_s < AN_HOUR
    assert found.attempts == 1


def test_a_server_that_never_went_down_is_not_ready(shared_lab: LabHandle, server: SqlServer) -> None:
    """A login alone proves nothing: the old server answers until it is shut down."""
    clock = HurriedClock()
    shared_lab.wait_until(lambda: ready(server).uptime_s > 2, what="an uptime of 2 s")

    with pytest.raises(SqlTimeout):
        ready(server, powered_on_s=-AN_HOUR, deadline_s=20, clock=clock)

    assert sum(clock.naps) == pytest.approx(20)


def test_a_database_that_does_not_exist_is_named_at_once(shared_lab: LabHandle) -> None:
    """One in recovery is listed with its state, so nothing is gained by waiting for one that is not."""
    clock = HurriedClock()

    with pytest.raises(DatabaseMissing):
        ready(server_of(shared_lab), database="nowhere", deadline_s=600, clock=clock)

    assert clock.naps == []


def test_an_unreachable_server_is_asked_less_and_less_often_until_the_deadline(shared_lab: LabHandle) -> None:
    """The pauses double up to five seconds, and the last one ends at the deadline."""
    clock = HurriedClock()

    with pytest.raises(SqlTimeout):
        ready(server_of(shared_lab, port=1), powered_on_s=0, deadline_s=20, clock=clock)

    assert clock.naps == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 3.65])


@pytest.mark.parametrize(("number", "tries"), [(18456, 3), (18470, 1), (18486, 1), (18487, 1), (18488, 1)])
def test_a_refused_login_is_tried_three_times_at_most_and_not_soon_again(
    lab: LabFactory, number: int, tries: int
) -> None:
    """A domain locks an account after a few; one that is disabled, locked or expired is not tried again."""
    running = lab(faults=[{"kind": "login_refused", "vm": "sql16", "boot": 1, "number": number}])
    clock, server = HurriedClock(), replace(listening(running), logins=Logins(None))

    for _ in range(2):
        with pytest.raises(AccountRefused):
            ready(server, deadline_s=600, clock=clock)

    assert running.sql_logins()["failed"] == tries
    assert len(clock.naps) == tries - 1
    assert all(nap >= 10 for nap in clock.naps)


def test_a_server_in_script_upgrade_is_waited_for(lab: LabFactory) -> None:
    """Message 18401 says that it is not ready yet, and nothing about the password."""
    running = lab(faults=[{"kind": "login_refused", "vm": "sql16", "boot": 1, "number": 18401}])
    clock, server = HurriedClock(), replace(listening(running), logins=Logins(None))

    with pytest.raises(SqlTimeout):
        ready(server, deadline_s=20, clock=clock)

    assert len(clock.naps) > 3


def test_a_login_that_succeeds_ends_the_count_of_refusals(shared_lab: LabHandle, server: SqlServer) -> None:
    """Servers and domains count refusals in a row too."""
    logins = Logins(None)
    wrong, right = (replace(server, password=word, logins=logins) for word in ("wrong", server.password))
    for _ in range(2):
        for _ in range(2):
            with pytest.raises(LoginRefused), connect(wrong):
                pass
        with connect(right):
            pass


def test_a_database_that_is_not_there_counts_as_no_refusal(server: SqlServer) -> None:
    """SQL Server says 4060, and then that the login failed: the password was right."""
    logins = Logins(None)
    for _ in range(5):
        with pytest.raises(ServerError), connect(replace(server, logins=logins), "nowhere"):
            pass


def test_without_a_rule_quietness_is_not_evaluated(server: SqlServer) -> None:
    """The record says so; it does not say that the guest was quiet."""
    quietness = ready(server).quietness

    assert quietness.quiet is None
    assert quietness.note.startswith("not evaluated")


def test_an_idle_guest_becomes_quiet(server: SqlServer) -> None:
    """An idle server stays below the limit for as long as the rule says."""
    began = time.monotonic()
    rule = Quiet(cpu_percent=50, for_s=1, timeout_s=30)

    quietness = ready(server, quiet=rule).quietness

    assert quietness.quiet is True
    assert quietness.sql_cpu_percent is not None
    assert time.monotonic() - began >= 1


def test_a_guest_that_is_never_quiet_is_measured_all_the_same(server: SqlServer) -> None:
    """After the timeout the boot continues, and the record says that the guest was busy."""
    rule = Quiet.model_construct(cpu_percent=0, for_s=1, timeout_s=1)

    quietness = ready(server, quiet=rule).quietness

    assert quietness.quiet is False
    assert quietness.note.startswith("busy")
