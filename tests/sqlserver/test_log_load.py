"""The load against the log, on the lab: statements, a common start, log writers, pool, what cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.sqlserver.support import LabFactory, server_of, vm
from tests.support.lab import LabHandle, start_lab
from vnuma.domain.study.study import Dataset
from vnuma.errors import MeasurementFailed, PlacementNotProven
from vnuma.sqlserver.client.connect import SqlServer, connect
from vnuma.sqlserver.client.failures import ServerError
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.client.query import run, run_all, value
from vnuma.sqlserver.database import dataset, ownership
from vnuma.sqlserver.instance import call_counters, server_configuration
from vnuma.sqlserver.instance.server_configuration import (
    AUTO,
    affinity_to,
    cpus_by_memory_node,
    online_cpus,
    set_affinity,
)
from vnuma.workloads.log_spinlock import load as log_load
from vnuma.workloads.log_spinlock.load import Load, run_load
from vnuma.workloads.log_spinlock.settings import LogSpinlock
from vnuma.workloads.log_spinlock.workload import WORKLOAD

DATABASE = "vnuma_log"
TWO_NODES: dict[str, Any] = {
    "vcpus": 16,
    "cores_per_socket": 8,
    "cpu_affinity": [2 * n for n in range(8)] + [32 + 2 * n for n in range(8)],
}
WAITING_ALONE = "SELECT COUNT(*) AS waiting FROM sys.dm_exec_requests WHERE wait_type = N'LCK_M_X'"
SETTINGS = LogSpinlock(name="log_spinlock", sizes=(20_000,))


@pytest.fixture(scope="module")
def log_lab(lab_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHandle]:
    """SQL Server 2014 in a VM of two nodes; each test creates what it needs."""
    sql = {"version": "12.0.6024.0", "edition": "Developer", "soft_numa": False}
    scenario = {"vms": [vm(sql=sql, **TWO_NODES)]}
    handle = start_lab(lab_binary, tmp_path_factory.mktemp("log-lab"), scenario, {})
    handle.wait_for("sql_listening")
    yield handle
    handle.stop()


@pytest.fixture
def server(log_lab: LabHandle) -> SqlServer:
    """Its SQL Server."""
    return server_of(log_lab)


@pytest.fixture
def control(server: SqlServer) -> Iterator[pyodbc.Connection]:
    """A connection to a database of ours, made for this test and dropped behind it."""
    with connect(server) as master:
        ownership.create(master, DATABASE)
        dataset.ensure_filegroup(master, DATABASE)
        log_load.keep_log(master, DATABASE)
        log_load.set_durability(master, DATABASE, "delayed")
        run(master, "USE master")
        with connect(server, DATABASE) as opened:
            yield opened
        set_affinity(master, AUTO)
        dataset.drop(master, DATABASE)


def load_of(server: SqlServer, form: str, inserts: int = 2_000) -> Load:
    """Ten sessions."""
    return Load(server, DATABASE, form, sessions=10, inserts_each=inserts, timeout_s=60)


@pytest.mark.parametrize(("form", "rows"), [("disk", 40_000), ("native", 20_000)])
def test_ten_sessions_begin_together_and_their_rows_are_there(
    server: SqlServer, control: pyodbc.Connection, form: str, rows: int
) -> None:
    """As often as wanted: each load has a table of its own."""
    cpus = online_cpus(control)
    for _ in range(2):
        run_all(control, log_load.make(form, 20_000))
        log_load.truncate_log(control, DATABASE)
        loaded = run_load(load_of(server, form), control, cpus)

        assert log_load.count_rows(control, form) == rows
        assert loaded.elapsed_s == loaded.longest_session_s > 0
        assert len(loaded.cpus) == 10
        assert loaded.spent.spinlocks["LOGCACHE_ACCESS"].spins > 0


def test_workers_away_from_the_log_writer_take_longer(server: SqlServer, control: pyodbc.Connection) -> None:
    """Found, left out, verified; the lab's truth is 1.55 times the time and 4.5 times the spins."""
    writers = call_counters.read_log_writers(control)
    found = call_counters.worker_cpus(writers, cpus_by_memory_node(control))
    assert found is not None
    assert [(writer.memory_node_id, writer.status) for writer in writers] == [(0, "HIDDEN ONLINE")]
    assert found.left_out == (0, 8)
    took = {}
    for workers in ("same_node", "other_node"):
        cpus = found.cpus(workers)
        set_affinity(control, affinity_to(cpus))
        run_all(control, log_load.make("disk", 20_000))
        took[workers] = run_load(load_of(server, "disk"), control, cpus)

    near, far = took["same_node"], took["other_node"]
    spins = [one.spent.spinlocks["LOGCACHE_ACCESS"].spins for one in (near, far)]
    assert far.elapsed_s / near.elapsed_s == pytest.approx(1.55, rel=0.03)
    assert spins[1] / spins[0] == pytest.approx(4.5, rel=0.03)


def test_a_session_on_another_cpu_keeps_the_load_from_beginning(
    server: SqlServer, control: pyodbc.Connection
) -> None:
    """The sessions that wait are sent home: no row is inserted, and the next load can begin."""
    run_all(control, log_load.make("disk", 20_000))
    with pytest.raises(PlacementNotProven):
        run_load(load_of(server, "disk"), control, (99,))

    assert log_load.count_rows(control, "disk") == 0
    run_all(control, log_load.make("disk", 20_000))
    run_load(load_of(server, "disk"), control, online_cpus(control))


def test_two_loads_do_not_run_at_once(
    server: SqlServer, control: pyodbc.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever holds the start is not disturbed."""
    monkeypatch.setattr(log_load, "LEAVE_S", 0.1)
    with connect(server, DATABASE) as other:
        log_load.hold_start(other)
        with pytest.raises(MeasurementFailed):
            run_load(load_of(server, "disk"), control, (0,))


def test_a_load_waits_for_a_failed_loads_sessions_to_leave(
    log_lab: LabHandle, server: SqlServer, control: pyodbc.Connection
) -> None:
    """Their lock is freed when SQL Server notices that they are gone, not when they are closed here."""
    with connect(server, DATABASE) as leaving, ThreadPoolExecutor(1) as pool:
        log_load.hold_start(leaving)
        begun = pool.submit(log_load.hold_start, control)
        log_lab.wait_until(lambda: value(leaving, WAITING_ALONE) == 1, what="the next load to wait")
        log_load.release_sessions(leaving)
        begun.result()


def test_an_error_in_a_session_is_the_loads(server: SqlServer, control: pyodbc.Connection) -> None:
    """Here the procedure is missing."""
    with pytest.raises(ServerError) as caught:
        run_load(load_of(server, "disk"), control, online_cpus(control))

    assert caught.value.native == 2812


def test_room_is_made_once(control: pyodbc.Connection) -> None:
    """Files grow to what a load needs, and never shrink."""
    for _ in range(2):
        log_load.make_room(control, DATABASE, data_mb=100, log_mb=700)
    assert value(control, "SELECT SUM(size) / 128 FROM sys.database_files WHERE type IN (0, 1)") == 800


@pytest.mark.parametrize("enabled", [True, False])
def test_the_pool_is_made_bound_and_taken_away(control: pyodbc.Connection, enabled: bool) -> None:
    """A database still bound is unbound; the Resource Governor is on or off as it was."""
    run(control, f"ALTER RESOURCE GOVERNOR {'RECONFIGURE' if enabled else 'DISABLE'}")
    run(control, "USE master")
    for percent in (50, 50, 40):
        server_configuration.hold(control, DATABASE, percent)
        now = server_configuration.read_governor(control)
        assert (now.enabled, now.pool_percent, now.bound) == (True, percent, (DATABASE,))
    server_configuration.remove(control, enabled=enabled)

    now = server_configuration.read_governor(control)
    assert (now.enabled, now.pool_percent, now.bound) == (enabled, None, ())


def found_by(lab: LabHandle, settings: LogSpinlock = SETTINGS) -> str:
    """Every obstacle's sentence."""
    with connect(server_of(lab)) as connection:
        return " ".join(one.what for one in WORKLOAD.obstacles(connection, settings, Dataset()))


def test_a_suitable_server_has_no_obstacles(log_lab: LabHandle) -> None:
    """2014, Developer edition."""
    assert found_by(log_lab) == ""


@pytest.mark.parametrize(
    ("machine", "sql", "settings", "sentence"),
    [
        ({}, {"version": "11.0.7001.0"}, {}, "older than 2014"),
        ({}, {"version": "12.0.6024.0", "edition": "Standard"}, {}, "no memory-optimised tables"),
        ({}, {"version": "15.0.4430.1", "edition": "Standard"}, {}, "no Resource Governor"),
        ({}, {"log_writers": "spread"}, {}, "log writers are on memory nodes 0, 1, 2, 3"),
        ({"memory_gb": 2}, {}, {"sizes": (20_000_000,)}, "inserts of form native need 7,235 MB"),
    ],
)
def test_what_keeps_it_from_running_is_reported_before(
    lab: LabFactory, machine: dict[str, Any], sql: dict[str, Any], settings: dict[str, Any], sentence: str
) -> None:
    """One sentence, before the first change; on disk alone an edition does not matter."""
    running = lab({"vms": [vm(sql={"edition": "Developer", "version": "15.0.4430.1", **sql}, **machine)]})
    wanted = LogSpinlock.model_validate({"name": "log_spinlock", **settings})

    assert sentence in found_by(running, wanted)
    if sql.get("edition") == "Standard":
        assert found_by(running, wanted.model_copy(update={"forms": ("disk",)})) == ""


def test_a_pool_that_is_there_and_pending_changes_are_reported(lab: LabFactory) -> None:
    """RECONFIGURE would put somebody else's changes in use."""
    running = lab("paper")
    with connect(server_of(running)) as connection:
        run(connection, "ALTER RESOURCE GOVERNOR RECONFIGURE")
        run(connection, "CREATE RESOURCE POOL somebodys")
    assert "Changes to the Resource Governor are waiting" in found_by(running)
    with connect(server_of(running)) as connection:
        run(connection, f"CREATE RESOURCE POOL {server_configuration.POOL}")
        run(connection, "ALTER RESOURCE GOVERNOR RECONFIGURE")
    assert "The resource pool vnuma_pool already exists" in found_by(running)
