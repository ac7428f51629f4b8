"""What a power-cycle does to the server: it comes back, or it is said why not."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.sqlserver.support import SMALL, HurriedClock, LabFactory, server_of
from tests.support.lab import LabHandle
from tests.vsphere.support import vcenter_of
from vnuma.domain.study.study import Quiet
from vnuma.errors import SqlTimeout, SqlUnreachable
from vnuma.sqlserver.client.connect import connect
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.query import value
from vnuma.sqlserver.database import dataset
from vnuma.sqlserver.instance.ready import Ready, wait_ready
from vnuma.vsphere.connect import connect as connect_vcenter
from vnuma.vsphere.power import power_on, shut_down, wait_for_guest
from vnuma.vsphere.read import find_vm, read_vm

FAST = {"tools_seconds": 0.1, "sql_seconds": 0.1, "shutdown_seconds": 0.1}
NO_QUIET = Quiet(cpu_percent=10, for_s=0, timeout_s=1)


def _start(lab: LabFactory, **scenario: Any) -> LabHandle:
    running = lab(boot=FAST, **scenario)
    running.wait_for("sql_listening")
    return running


def _power_cycle(running: LabHandle) -> None:
    with connect_vcenter(vcenter_of(running)) as session:
        ref = find_vm(session, "sql16")
        wait_for_guest(session, ref, timeout_s=20)
        shut_down(session, ref, timeout_s=20)
        power_on(session, ref, host_moid=read_vm(session, ref).host_moid)


def _ready(running: LabHandle, database: str | None, **how: Any) -> Ready:
    server = server_of(running)
    how = {"powered_on_s": 0.0, "deadline_s": 20, "quiet": NO_QUIET, **how}
    return wait_ready(server, database=database, **how)


@contextmanager
def _frozen(running: LabHandle) -> Iterator[None]:
    """A frozen guest: its sockets are open, and nobody answers."""
    os.kill(running.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, running.pid, os.WSTOPPED | os.WNOWAIT)  # a thread may still answer until then
    try:
        yield
    finally:
        os.kill(running.pid, signal.SIGCONT)


def test_a_dataset_survives_a_power_cycle(lab: LabFactory) -> None:
    """Its rows are durable."""
    running = _start(lab)
    with connect(server_of(running)) as connection:
        before = dataset.prepare(connection, SMALL)

    _power_cycle(running)

    assert _ready(running, SMALL.database).uptime_s < 20
    with connect(server_of(running)) as connection:
        after = dataset.prepare(connection, SMALL)
    assert not after.changed
    assert after.tables == before.tables


def test_a_database_in_recovery_is_waited_for_and_never_written(lab: LabFactory) -> None:
    """A login to master works long before the data is loaded; the stage is in the error."""
    running = _start(lab, faults=[{"kind": "database_recovering", "vm": "sql16", "boot": 2}])
    with connect(server_of(running)) as connection:
        dataset.prepare(connection, SMALL)

    _power_cycle(running)
    _ready(running, None)

    with pytest.raises(SqlTimeout):
        _ready(running, SMALL.database, powered_on_s=60, clock=HurriedClock())
    with connect(server_of(running)) as connection:
        for action in (dataset.prepare, dataset.verify):
            with pytest.raises(ServerError):
                action(connection, SMALL)
        with pytest.raises(ServerError):
            dataset.drop(connection, SMALL.database)


def test_a_server_that_never_listens_is_given_up_at_the_deadline(lab: LabFactory) -> None:
    """The error names the server, the stage and what the last try met."""
    running = lab(boot=FAST, faults=[{"kind": "sql_never", "vm": "sql16", "boot": 1}])

    with pytest.raises(SqlTimeout, match=r"127\.0\.0\.1:\d+: .*within 20 s, waiting for a login: .*answer"):
        _ready(running, None, clock=HurriedClock())


def test_a_frozen_server_is_left_at_the_statements_deadline(lab: LabFactory) -> None:
    """No driver gives up on a server that keeps its connection open; our deadline does."""
    running = _start(lab)
    with (
        connect(server_of(running), statement_timeout_s=0.5) as connection,
        _frozen(running),
        pytest.raises(SqlUnreachable),
    ):
        value(connection, "SELECT DB_NAME() AS name")

    with connect(server_of(running)) as connection:
        assert value(connection, "SELECT DB_NAME() AS name") == "master"
