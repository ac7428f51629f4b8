"""A study over several sites: real daemons, a lab at each site, one PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.support.cli import Ran, command, vnuma
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.mesh import Mesh, mesh_of
from tests.support.postgresql import Cluster
from tests.support.site import write_study
from vnuma.store import attempts, runs, vms
from vnuma.store.open import Store, open_store
from vnuma.store.samples import iter_samples
from vnuma.store.sites import sites_of_run
from vnuma.store.states import RunState

SECRET = "VNUMA_TEST_SITE_PASSWORD"
SITES = {"site-b": "sql-b", "site-c": "sql-c"}
"""Each node's VM, as the inventory calls it."""


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


def host_of(lab: LabHandle, node: str | None) -> dict[str, Any]:
    """The inventory variables of a lab's first VM, with the password as the node knows it."""
    sql, password = next(iter(lab.vms.values())), {"env": SECRET}
    address = {"host": lab.vcenter.host, "port": lab.vcenter.port, "user": lab.vcenter.user}
    authority = str(lab.vcenter.ca_file)
    return {
        "vnuma_vm": sql.path,
        **({"vnuma_node": node} if node else {}),
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


@pytest.fixture
def study(home: Path, tmp_path: Path, lab: LabFactory, postgresql: Cluster) -> Iterator[Study]:
    """Nothing is started yet but the labs, the store and the daemons."""
    labs = {node: lab() for node in SITES}
    hosts = {SITES[node]: host_of(running, node) for node, running in labs.items()}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
    write_study(tmp_path, vms=list(hosts), design={"neighbours": "together"})
    url = postgresql.new_store()
    environments: Mapping[str, Mapping[str, str]] = {
        node: {
            SECRET: running.vcenter.password,
            "VNUMA_STORE": url,
            "VNUMA_HOME": str(home.parent / f"{node}-home"),
        }
        for node, running in labs.items()
    }
    with mesh_of(home / "mesh", environments) as mesh:
        made = Study(tmp_path, url, mesh, labs, {})
        made.before = made.settings()
        yield made


def refuse_secret_on_disk(study: Study, home: Path) -> None:
    """No file of controller or node, work units above all, has a password."""
    secrets = {lab.vcenter.password.encode() for lab in study.labs.values()}
    files = [path for path in home.parent.rglob("*") if path.is_file()]
    assert [path for path in files if any(secret in path.read_bytes() for secret in secrets)] == []


def test_one_study_measures_vms_of_two_sites(study: Study, home: Path) -> None:
    """One run: every cell valid, every sample once, every VM as before, no password in any file."""
    planned = study.call("plan", *study.on)
    ran = study.call("run", *study.on)

    assert planned.code == 0, planned.text
    assert all(name in planned.out for name in ("sql16", "1x16", "4x4"))
    assert ran.code == 0, ran.text
    everything_is_there(study)
    refuse_secret_on_disk(study, home)


def changed(lab: LabHandle) -> None:
    """Return once this lab's VM is in an arm's shape."""
    lab.wait_for("power_off")


def everything_is_there(study: Study) -> None:
    """Every cell is valid once, no sample is lost or doubled, and every VM is as it was."""
    with study.store.read() as connection:
        run = runs.get_run(connection, "small.1")
        known = {vm.name: (vm.node, vm.at_baseline) for vm in vms.vms_of_run(connection, run.id)}
        lines = attempts.lines_of_run(connection, run.id)
        counted = {line.id for line in lines if line.outcome == "valid"}
        kept = [item for item in iter_samples(connection, run.id) if item.attempt_id in counted]
    assert run.state == RunState.FINISHED
    assert known == {vm: (node, True) for node, vm in SITES.items()}
    assert (len(counted), len({line.cell_id for line in lines}), len(kept)) == (4, 4, 8)
    assert study.settings() == study.before


@pytest.mark.long
def test_a_site_that_is_cut_off_works_on_and_is_followed_again(study: Study) -> None:
    """The status says since when the mesh has not reached it; healed, the run ends as if nothing had been."""
    with subprocess.Popen(command("run", *study.on), env=study.env, stderr=subprocess.PIPE) as run:
        changed(study.labs["site-b"])
        study.mesh.daemons["site-b"].stop()
        study.mesh.wait_until_hidden("site-b")
        study.labs["site-b"].wait_for("power_off", count=2)
        cut = study.call("status")
        study.mesh.start("site-b")
        study.mesh.wait_until_seen("site-b")
        assert run.stderr is not None
        said = run.stderr.read().decode()

    assert "site-b: the mesh has not reached it since" in cut.out
    assert "its work goes on" in cut.out
    assert run.returncode == 0, said
    assert "site=site-b is seen again" in said
    everything_is_there(study)


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

    assert (shown.code, restored.code) == (0, 0), shown.text + restored.text
    assert "sql-c, left by small.1" in shown.out
    assert "(by site-c)" in restored.out
    assert refused.code == 7
    assert "only site-b reaches it" in refused.err
    assert "vnuma restore sql-b -i INVENTORY" in refused.err
    assert by_hand.code == 0, by_hand.text
    assert study.settings() == study.before
