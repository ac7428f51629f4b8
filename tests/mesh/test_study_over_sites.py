"""A study over several sites: real daemons, a lab at each site, one PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest
from sqlalchemy import update

from tests.conftest import LabFactory
from tests.support.cli import TIMEOUT_S, Ran, command, vnuma, vnuma_here
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.mesh import CONTROLLER, Mesh, mesh_of
from tests.support.namespace import Namespace, relayed
from tests.support.postgresql import Cluster, database_of, find_binaries, start
from tests.support.receptor import free_port
from tests.support.site import write_study
from tools.bench.processes import descendants
from vnuma.engine.access.locking import stat_of
from vnuma.engine.lease.supervision import SILENT_AFTER, process_lives
from vnuma.report.model.configuration import configuration
from vnuma.report.model.model import load_run
from vnuma.store import attempts, runs, tables, vms
from vnuma.store.open import Store, open_store
from vnuma.store.rows import RunState
from vnuma.store.samples import iter_samples
from vnuma.store.sites import sites_of_run

SECRET = "VNUMA_TEST_SITE_PASSWORD"
SITES = {"site-b": "sql-b", "site-c": "sql-c", CONTROLLER: "sql-a"}
"""Each node's VM, as the inventory calls it; the controller's own names no node."""

TWO = ("site-b", "site-c")


@dataclass
class Study:
    """Two sites with a lab each; the study's file, the inventory, and the store that all share."""

    folder: Path
    url: str
    mesh: Mesh
    labs: dict[str, LabHandle]
    before: dict[str, dict[str, Any]]

    def call(self, *arguments: str | Path) -> Ran:
        """Run `vnuma` on the controller, which knows no password."""
        return vnuma(*arguments, env=self.env)

    @property
    def env(self) -> dict[str, str]:
        """The environment of the controller's commands."""
        return {**os.environ, "VNUMA_STORE": self.url}

    @property
    def on(self) -> list[str | Path]:
        """The study and its inventory, as arguments."""
        return [self.folder / "small.yml", "-i", self.folder / "hosts.yml"]

    @property
    def store(self) -> Store:
        """The store that all share."""
        return open_store(self.url)

    def settings(self) -> dict[str, dict[str, Any]]:
        """Every VM's settings as its own vCenter has them."""
        return {node: settings_now(lab) for node, lab in self.labs.items()}


def host_of(lab: LabHandle, node: str) -> dict[str, Any]:
    """The inventory variables of a lab's first VM, with the password as the node knows it."""
    sql, password = next(iter(lab.vms.values())), {"env": SECRET}
    address = {"host": lab.vcenter.host, "port": lab.vcenter.port, "user": lab.vcenter.user}
    authority = str(lab.vcenter.ca_file)
    return {
        "vnuma_vm": sql.path,
        **({} if node == CONTROLLER else {"vnuma_node": node}),
        "vnuma_test_clone": True,
        "vnuma_vcenter": {**address, "password": password, "ca_file": authority},
        "vnuma_sql": {
            "host": sql.host,
            "port": sql.port,
            "user": sql.user,
            "password": password,
            "ca_file": authority,
        },
    }


class Studies(Protocol):
    """`studies(names)`: a study of these nodes' VMs, with `more` for the mesh, that ends with the test."""

    def __call__(self, nodes: Sequence[str], url: str, node_url: str | None = None, **more: Any) -> Study: ...


@pytest.fixture
def studies(home: Path, tmp_path: Path, lab: LabFactory) -> Iterator[Studies]:
    """Nothing of a study is started but the labs and the daemons."""
    with ExitStack() as running:

        def made(nodes: Sequence[str], url: str, node_url: str | None = None, **more: Any) -> Study:
            labs = {node: lab() for node in nodes}
            hosts = {SITES[node]: host_of(there, node) for node, there in labs.items()}
            (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
            retried = {"attempts_per_cell": 3}
            write_study(tmp_path, vms=list(hosts), design={"neighbours": "together"}, limits=retried)
            environments = {
                node: {
                    SECRET: there.vcenter.password,
                    "VNUMA_STORE": node_url or url,
                    "VNUMA_HOME": str(home.parent / f"{node}-home"),
                }
                for node, there in labs.items()
                if node != CONTROLLER
            }
            mesh = running.enter_context(mesh_of(home / "mesh", environments, **more))
            study = Study(tmp_path, url, mesh, labs, {})
            study.before = study.settings()
            return study

        yield made


@pytest.fixture
def study(studies: Studies, postgresql: Cluster) -> Study:
    """Of the VMs of two sites, which reach the store themselves."""
    return studies(TWO, postgresql.new_store())


def refuse_secret_on_disk(study: Study, home: Path) -> None:
    """No file of controller or node, work units above all, has a password."""
    secrets = {lab.vcenter.password.encode() for lab in study.labs.values()}
    files = [path for path in home.parent.rglob("*") if path.is_file()]
    assert [path for path in files if any(secret in path.read_bytes() for secret in secrets)] == []


def test_one_study_measures_vms_of_two_sites(
    study: Study, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run: every cell valid, every sample once, every VM as before, no password in any file."""
    monkeypatch.setenv("VNUMA_STORE", study.url)
    planned = vnuma_here("plan", *study.on)
    ran = study.call("run", *study.on)

    assert planned.code == 0, planned.text
    assert all(name in planned.out for name in ("sql16", "1x16", "4x4"))
    assert ran.code == 0, ran.text
    everything_is_there(study)
    loaded = load_run(study.store, "small.1")
    called = [dict(configuration(loaded, vm))["Client"][0] for vm in loaded.vms]
    assert called == [("Called from", f"node {node}") for node in TWO]
    refuse_secret_on_disk(study, home)


def changed(lab: LabHandle) -> None:
    """Return once this lab's VM is in an arm's shape."""
    lab.wait_for("power_off")


def everything_is_there(study: Study) -> None:
    """Every cell is valid once, no sample is lost or doubled, and every VM is restored."""
    with study.store.read() as connection:
        run = runs.get_run(connection, "small.1")
        known = {vm.name: (vm.node, vm.at_baseline) for vm in vms.vms_of_run(connection, run.id)}
        lines = attempts.lines_of_run(connection, run.id)
        counted = {line.id for line in lines if line.outcome == "valid"}
        kept = [item for item in iter_samples(connection, run.id) if item.attempt_id in counted]
    assert run.state == RunState.FINISHED
    assert known == {SITES[node]: (None if node == CONTROLLER else node, True) for node in study.labs}
    cells = 2 * len(study.labs)
    assert (len(counted), len({line.cell_id for line in lines}), len(kept)) == (cells, cells, 2 * cells)
    assert study.settings() == study.before


@pytest.mark.long
def test_a_site_that_is_cut_off_works_on_and_is_followed_again(study: Study) -> None:
    """The status says since when the mesh has not reached it; healed, the run ends as if nothing had been."""
    with subprocess.Popen(command("run", *study.on), env=study.env, stderr=subprocess.PIPE) as run:
        changed(study.labs["site-b"])
        study.mesh.daemons["site-b"].stop()
        assert run.stderr is not None
        heard = next(line for line in run.stderr if b"the mesh has not reached it" in line)
        study.labs["site-b"].wait_for("power_off", count=2, timeout_s=TIMEOUT_S)
        cut = study.call("status")
        study.mesh.start("site-b")
        study.mesh.wait_until_seen("site-b")
        said = (heard + run.stderr.read()).decode()

    assert "site-b: the mesh has not reached it since" in cut.out
    assert "its work goes on" in cut.out
    assert run.returncode == 0, said
    everything_is_there(study)


STAGES = {
    "reshaping": ("power_off", 1),
    "booting": ("boot", 2),
    "measuring": ("sql_listening", 2),
    "between cells": ("power_off", 2),
    "restoring": ("power_off", 3),
    "restored": ("sql_listening", 4),
}
"""What a site's lab tells when its part has come so far: its VM is booted once before the run."""


@pytest.mark.long
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("victim", ["controller", "process", "daemon", "controller's daemon"])
def test_whatever_is_killed_nothing_is_lost(
    studies: Studies, postgresql: Cluster, victim: str, stage: str
) -> None:
    """In any stage: every cell is valid once, and the VM is as it was."""
    study = studies(["site-b"], postgresql.new_store())
    kind, count = STAGES[stage]
    with subprocess.Popen(command("run", *study.on), env=study.env, stderr=subprocess.PIPE) as run:
        study.labs["site-b"].wait_for(kind, count=count, timeout_s=TIMEOUT_S)
        if victim == "controller":
            run.kill()
        elif victim == "process":
            kill_part(study)
        else:
            name = "site-b" if victim == "daemon" else CONTROLLER
            study.mesh.daemons[name].kill()
            study.mesh.start(name)
        assert run.stderr is not None
        said = run.stderr.read().decode()
    study.mesh.wait_until_seen("site-b")
    if victim == "controller":
        said += study.call("run", "--resume", "small.1", "-i", study.folder / "hosts.yml").text
    else:
        assert run.returncode == 0, said
    try:
        everything_is_there(study)
    except AssertionError as error:
        error.add_note(said)
        raise


def kill_part(study: Study) -> None:
    """Kill the process that does site-b's part, unless it has just ended."""
    with study.store.read() as connection:
        (part,) = sites_of_run(connection, runs.get_run(connection, "small.1").id)
    if part.supervisor_pid is not None:
        with suppress(ProcessLookupError):
            os.kill(part.supervisor_pid, signal.SIGKILL)


@pytest.mark.long
def test_a_killed_process_of_a_node_is_started_again(studies: Studies, postgresql: Cluster) -> None:
    """While the controller follows it: the interrupted cell is measured again, and the run succeeds."""
    study = studies(["site-b"], postgresql.new_store())
    with subprocess.Popen(command("run", *study.on), env=study.env, stderr=subprocess.PIPE) as run:
        changed(study.labs["site-b"])
        with study.store.read() as connection:
            (part,) = sites_of_run(connection, runs.get_run(connection, "small.1").id)
        assert part.supervisor_pid is not None
        os.kill(part.supervisor_pid, signal.SIGKILL)
        assert run.stderr is not None
        said = run.stderr.read().decode()
    with study.store.read() as connection:
        (again,) = sites_of_run(connection, part.run_id)

    assert run.returncode == 0, said
    assert again.unit != part.unit
    everything_is_there(study)


@pytest.mark.long
@pytest.mark.parametrize("known", [{}, {"supervisor_pid": None}], ids=["at work", "before it began"])
def test_a_node_that_was_switched_off_begins_its_part_again(
    studies: Studies, postgresql: Cluster, known: dict[str, Any]
) -> None:
    """Nothing of it was left to write that its unit has ended: seen again and silent, it gets a new one."""
    study = studies(["site-b"], postgresql.new_store())
    with subprocess.Popen(command("run", *study.on), env=study.env, stderr=subprocess.PIPE) as run:
        changed(study.labs["site-b"])
        switch_off(study)
        with study.store.write() as connection:
            long_ago = datetime.now(UTC) - SILENT_AFTER
            connection.execute(update(tables.site).values(heartbeat_at=long_ago, unit_at=long_ago, **known))
        study.mesh.start("site-b")
        assert run.stderr is not None
        said = run.stderr.read().decode()

    assert run.returncode == 0, said
    everything_is_there(study)


def switch_off(study: Study) -> None:
    """End all processes of site-b at once: its daemon, the daemon's runner, the part and its play."""
    with study.store.read() as connection:
        (part,) = sites_of_run(connection, runs.get_run(connection, "small.1").id)
    assert part.supervisor_pid is not None
    runner = int(stat_of(part.supervisor_pid)[1])
    study.mesh.daemons["site-b"].kill()
    for process in (runner, *descendants(runner)):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@pytest.mark.long
def test_a_killed_controller_finds_its_sites_work_again(study: Study) -> None:
    """One node's process is killed too: `vnuma run --resume` follows the other and begins that part again."""
    with subprocess.Popen(command("run", *study.on), env=study.env, stderr=subprocess.DEVNULL) as run:
        for running in study.labs.values():
            changed(running)
        run.kill()
    with study.store.read() as connection:
        (part, _) = sites_of_run(connection, runs.get_run(connection, "small.1").id)
    assert part.supervisor_pid is not None
    os.kill(part.supervisor_pid, signal.SIGKILL)

    resumed = study.call("run", "--resume", "small.1", "-i", study.folder / "hosts.yml")

    assert resumed.code == 0, resumed.text
    everything_is_there(study)


@pytest.mark.long
def test_a_vm_is_restored_from_where_it_is_reached(study: Study, home: Path, tmp_path: Path) -> None:
    """By its node, called from the controller; of a dead node, by another machine of that site."""
    with subprocess.Popen(command("run", *study.on), env=study.env, stderr=subprocess.DEVNULL) as run:
        for running in study.labs.values():
            changed(running)
        run.kill()
    with study.store.read() as connection:
        parts = sites_of_run(connection, runs.get_run(connection, "small.1").id)
    for part in parts:
        assert part.supervisor_pid is not None
        os.kill(part.supervisor_pid, signal.SIGKILL)
    study.mesh.daemons["site-b"].stop()
    study.mesh.wait_until_hidden("site-b")

    resumed = study.call("run", "--resume", "small.1", "-i", study.folder / "hosts.yml")
    shown = study.call("restore", "sql-c", "--dry-run")
    restored = study.call("restore", "sql-c")
    refused = study.call("restore", "sql-b")
    beside = {
        "VNUMA_HOME": str(tmp_path / "beside"),
        "VNUMA_NODE": "site-b2",
        "VNUMA_STORE": study.url,
        SECRET: study.labs["site-b"].vcenter.password,
    }
    by_hand = vnuma("restore", "sql-b", "-i", study.folder / "hosts.yml", env=beside)

    assert resumed.code == 7, resumed.text
    assert "sql-b may not be at baseline" in resumed.err
    assert "The mesh does not reach site-b" in resumed.err
    assert (shown.code, restored.code) == (0, 0), shown.text + restored.text
    assert "sql-c, left by small.1" in shown.out
    assert "(by site-c)" in restored.out
    assert refused.code == 7
    assert "only site-b reaches it" in refused.err
    assert "vnuma restore sql-b -i INVENTORY" in refused.err
    assert by_hand.code == 0, by_hand.text
    assert study.settings() == study.before


@pytest.mark.long
def test_a_controller_without_any_route_to_a_site_measures_there(
    studies: Studies, postgresql: Cluster, tmp_path: Path
) -> None:
    """It has loopback alone: neither vCenter nor SQL Server is reached from where the study is run."""
    with ExitStack() as running:
        alone = Namespace()
        running.callback(alone.stop)
        url, near = postgresql.new_store(), tmp_path / ".s.PGSQL.5432"
        running.enter_context(relayed(str(near), str(postgresql.folder / near.name)))
        study = studies(
            ["site-b"], f"postgresql://owner@/{database_of(url)}?host={tmp_path}", url, namespace=alone
        )
        there = study.labs["site-b"]
        reached = [alone.reaches(port) for port in (there.vcenter.port, next(iter(there.vms.values())).port)]
        ran = subprocess.run(
            [*alone.prefix, *command("run", *study.on)],
            env=study.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )

        assert reached == [False, False]
        assert ran.returncode == 0, ran.stdout + ran.stderr
        everything_is_there(study)


@pytest.mark.long
def test_a_site_that_loses_the_store_with_the_link_begins_its_part_again(studies: Studies) -> None:
    """The store is reached through the mesh alone: the process there ends, and nothing is lost or doubled."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL server found (initdb, postgres): Debian: apt install postgresql")
    with ExitStack() as running:
        server = start(binaries, free_port())
        running.callback(server.stop)
        url = server.new_store()
        through = f"postgresql://owner@127.0.0.1:{server.port + 1}/{database_of(url)}"
        study = studies(["site-b"], url, through, store=f"127.0.0.1:{server.port}")
        run = running.enter_context(
            subprocess.Popen(command("run", *study.on), env=study.env, stderr=subprocess.PIPE)
        )
        changed(study.labs["site-b"])
        with study.store.read() as connection:
            (part,) = sites_of_run(connection, runs.get_run(connection, "small.1").id)
        assert part.supervisor_pid is not None
        study.mesh.daemons[CONTROLLER].stop()
        until = time.monotonic() + TIMEOUT_S
        while process_lives(part.supervisor_pid) and time.monotonic() < until:
            time.sleep(0.5)
        study.mesh.start(CONTROLLER)
        assert run.stderr is not None
        said = run.stderr.read().decode()

        assert run.wait(TIMEOUT_S) == 0, said
        everything_is_there(study)


@pytest.mark.long
def test_ctrl_c_stops_a_node_and_the_controllers_own_part(
    studies: Studies, postgresql: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both restore their VMs; `vnuma run --resume` measures what is left, here and there."""
    study = studies([CONTROLLER, "site-b"], postgresql.new_store())
    monkeypatch.setenv(SECRET, study.labs[CONTROLLER].vcenter.password)
    with subprocess.Popen(command("run", *study.on), env=study.env, stderr=subprocess.PIPE) as run:
        for running in study.labs.values():
            changed(running)
        run.send_signal(signal.SIGINT)
        assert run.stderr is not None
        said = run.stderr.read().decode()
    stopped = study.settings()
    resumed = study.call("run", "--resume", "small.1", "-i", study.folder / "hosts.yml")

    assert run.returncode == 130, said
    assert "vnuma run --resume small.1" in said
    assert stopped == study.before
    assert resumed.code == 0, resumed.text
    everything_is_there(study)


@pytest.mark.long
def test_a_second_ctrl_c_leaves_the_site_to_its_restore(studies: Studies, postgresql: Cluster) -> None:
    """The controller says which site is at work and how to follow it, and waits for nobody."""
    study = studies(["site-b"], postgresql.new_store())
    with subprocess.Popen(command("run", *study.on), env=study.env, stderr=subprocess.PIPE) as run:
        changed(study.labs["site-b"])
        run.send_signal(signal.SIGINT)
        assert run.stderr is not None
        heard = next(line for line in run.stderr if b"Stopping" in line)
        run.send_signal(signal.SIGINT)
        said = (heard + run.stderr.read()).decode()

    study.labs["site-b"].wait_until(
        lambda: all(vm.at_baseline for vm in load_run(study.store, "small.1").vms),
        what="restore by the site",
        timeout_s=TIMEOUT_S,
    )
    assert run.returncode == 7, said
    assert "site-b is still at work on sql-b, and was asked to stop" in said
    assert "vnuma run --resume small.1 follows it" in said
    assert study.settings() == study.before


@pytest.mark.parametrize("verb", ["plan", "run"])
def test_a_study_of_a_site_that_is_not_reached_does_not_begin(
    home: Path,
    tmp_path: Path,
    shared_lab: LabHandle,
    postgresql: Cluster,
    verb: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exit code 4 with the node and what the mesh reaches; no run is stored."""
    url = postgresql.new_store()
    monkeypatch.setenv("VNUMA_STORE", url)
    hosts = {"sql-b": host_of(shared_lab, "site-b")}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
    with mesh_of(home / "mesh", {}):
        refused = vnuma_here(verb, write_study(tmp_path, vms=["sql-b"]), "-i", tmp_path / "hosts.yml")

    assert refused.code == 4, refused.text
    assert "The mesh does not reach site-b now" in refused.err
    with open_store(url).read() as connection:
        assert runs.list_runs(connection) == ()
