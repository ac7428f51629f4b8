"""Callers: processes that call a procedure of the lab's SQL Server, counted from outside."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sqlserver.support import LabFactory, driver_of, listening
from vnuma.errors import ConnectionDropped, MeasurementFailed
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.driver import DriverKind
from vnuma.sqlserver.client.query import fetch, run, value
from vnuma.sqlserver.database.ownership import ForeignDatabase
from vnuma.sqlserver.instance import call_counters
from vnuma.workloads.call_volume import workload as call_procedures
from vnuma.workloads.call_volume.callers import Callers, callers
from vnuma.workloads.client import HERE, client_host

ROWS = 50
DATABASE = "vnuma_calls"


def prepared(server: SqlServer) -> SqlServer:
    """The server with procedures and table in a database of ours."""
    with connect(server) as connection:
        call_procedures.prepare(connection, DATABASE, ROWS)
    return server


def connected(crowd: Callers, connections: int, form: str = "noop") -> list[int]:
    """So many callers, each of which has called once."""
    call = call_procedures.call(form)
    return crowd.connect(connections, call, keys=ROWS, own_session=form == "noop")


def offspring(of: str = str(os.getpid())) -> set[str]:
    """Processes that one has started, and that those have, which still run."""
    started = set(Path(f"/proc/{of}/task/{of}/children").read_text(encoding="ascii").split())
    return started.union(*(offspring(one) for one in started))


def callers_among(processes: set[str]) -> set[str]:
    """Those that have started none themselves."""
    return {one for one in processes if not offspring(one)}


def nothing() -> None:
    """Nobody asks for a stop."""


@pytest.mark.parametrize("form", ["noop", "seek"])
def test_the_server_executes_what_the_callers_count(server: SqlServer, form: str) -> None:
    """To the call: what three callers counted in the end is what the procedure's statistics grew by."""
    prepared(server)
    with connect(server, DATABASE) as observer, callers(server, DATABASE) as crowd:
        connected(crowd, 1, form)
        crowd.stop()
        before = call_counters.counts(observer, form, schedulers=True)
        connected(crowd, 3, form)
        crowd.go()
        crowd.watch(0.2, nothing)
        first = crowd.count()
        crowd.watch(0.2, nothing)
        last = crowd.stop()
        after = call_counters.counts(observer, form, schedulers=True)

    assert 0 < first.calls < last.calls == after.executions - before.executions
    assert len(last.busy_since(first)) == 3
    assert after.at > before.at
    assert after.schedulers is not None
    assert len(after.schedulers.used_ms) == 16


def test_calls_arrive_as_remote_procedure_calls_by_name(server: SqlServer) -> None:
    """The driver's notation for calls makes one; EXEC with a parameter is a prepared statement instead."""
    prepared(server)
    with connect(server, DATABASE) as observer, callers(server, DATABASE) as crowd:
        session = connected(crowd, 1)[0]
        assert call_counters.last_input(observer, session) == ("RPC Event", "dbo.noop;1")
        where = call_counters.endpoint(observer, session)
        assert where is not None
        assert where.same_host
        crowd.stop()

        with connect(server, DATABASE) as other:
            spid = int(value(other, "SELECT @@SPID AS session_id"))
            fetch(other, "EXEC dbo.noop ?", 5)
            sent = call_counters.last_input(observer, spid)
    assert not call_counters.is_call_of("noop", sent)


def test_a_call_sends_nothing_to_the_server_but_itself(server: SqlServer) -> None:
    """Neither a cancel of the call before nor a second request: one batch request for each call."""
    prepared(server)
    with connect(server, DATABASE) as observer, callers(server, DATABASE) as crowd:
        connected(crowd, 1)
        before = call_counters.counts(observer, "noop", schedulers=False)
        crowd.go()
        crowd.watch(0.2, nothing)
        crowd.stop()
        after = call_counters.counts(observer, "noop", schedulers=False)

    assert after.requests - before.requests == after.executions - before.executions + 1  # the look itself


def test_a_server_that_goes_away_ends_the_window_and_every_process(lab: LabFactory) -> None:
    """The guest dies while callers call: no one waits for the window's end, and no process is left."""
    running = lab()
    server = prepared(listening(running))
    before = offspring()

    with callers(server, DATABASE) as crowd:
        connected(crowd, 2)
        crowd.go()
        crowd.watch(0.1, nothing)
        running.stop()
        with pytest.raises(ConnectionDropped):
            crowd.watch(60, nothing)

    assert offspring() == before - {str(running.pid)}


def test_a_caller_that_dies_is_named(server: SqlServer) -> None:
    """Killed by somebody: the window ends at once, with what to look for."""
    prepared(server)
    before = offspring()
    with callers(server, DATABASE) as crowd:
        connected(crowd, 1)
        (process,) = callers_among(offspring() - before)
        os.kill(int(process), 9)
        with pytest.raises(MeasurementFailed) as named:
            crowd.watch(60, nothing)
    assert named.value.fix


def test_a_login_that_is_refused_is_reported_in_words(server: SqlServer) -> None:
    """What the driver said in the caller's process arrives translated, and without the password."""
    wrong = SqlServer(server.host, server.port, server.user, "not-this-one", server.driver, "no")
    with (
        callers(wrong, "master") as crowd,
        pytest.raises(MeasurementFailed, match="Caller 1 of 1 failed") as refused,
    ):
        connected(crowd, 1)
    assert "not-this-one" not in str(refused.value)


def test_a_call_that_answers_wrongly_is_an_error(server: SqlServer) -> None:
    """A row with another value than the one put there."""
    prepared(server)
    with connect(server, DATABASE) as connection:
        run(connection, f"DELETE FROM {call_procedures.TABLE} WHERE id = 1")
        run(connection, f"INSERT INTO {call_procedures.TABLE} (id, quantity) VALUES (1, 77)")
    try:
        with callers(server, DATABASE) as crowd, pytest.raises(MeasurementFailed):
            crowd.connect(1, call_procedures.call("seek"), keys=1, own_session=False)
    finally:
        prepared(server)  # finds the wrong row, and recreates the table


@pytest.mark.parametrize("kind", ["freetds", "msodbcsql18"])
@pytest.mark.parametrize(
    "body",
    [
        "RAISERROR (N'sold out', 16, 1); SELECT v.n FROM (VALUES (1), (2)) AS v (n)",
        "SELECT CAST(@@SPID AS int) AS session_id; RAISERROR (N'sold out', 16, 1)",
    ],
)
def test_a_callers_own_error_is_not_a_lost_connection(server: SqlServer, kind: DriverKind, body: str) -> None:
    """Results that are pending keep its connection busy; and no error behind a row is passed over."""
    with_driver = replace(server, driver=driver_of(kind))
    prepared(server)
    with connect(server, DATABASE) as connection:
        run(connection, "IF OBJECT_ID(N'dbo.failing', N'P') IS NOT NULL DROP PROCEDURE dbo.failing")
        run(connection, f"CREATE PROCEDURE dbo.failing @n int AS SET NOCOUNT ON; {body}")

    with callers(with_driver, DATABASE) as crowd, pytest.raises(MeasurementFailed):
        crowd.connect(1, "{CALL dbo.failing (?)}", keys=ROWS, own_session=True)


def test_a_client_says_why_it_does_not_reach_a_server(server: SqlServer) -> None:
    """As it sees the port, whatever vnuma itself reaches."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        with client_host(HERE) as (host, _hello):
            assert host.why_not(server.host, server.port) is None
            assert host.why_not("127.0.0.1", taken.getsockname()[1]) == "Connection refused"


def test_procedures_and_rows_are_made_once_and_mended(server: SqlServer) -> None:
    """A second time changes nothing; a lost row or procedure is made again."""
    prepared(server)
    with connect(server) as connection:
        assert not call_procedures.prepare(connection, DATABASE, ROWS)
        run(connection, f"DELETE FROM {call_procedures.TABLE} WHERE id = 3")
        run(connection, "DROP PROCEDURE dbo.seek")
        assert call_procedures.prepare(connection, DATABASE, ROWS)
        assert fetch(connection, f"SELECT COUNT(*) AS c FROM {call_procedures.TABLE}") == [(ROWS,)]


def test_a_database_of_others_is_not_touched(server: SqlServer) -> None:
    """It has our name and no marker."""
    with connect(server) as connection:
        run(connection, "CREATE DATABASE theirs")
        with pytest.raises(ForeignDatabase):
            call_procedures.prepare(connection, "theirs", ROWS)
