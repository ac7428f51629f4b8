"""Every template as AWX launches its playbook, on the lab: credentials, surveys, PostgreSQL, no home."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LabFactory
from tests.support.awx import AWX, Launcher, Worker, load, on_this_machine
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.ports import free_port
from tests.support.postgresql import Cluster, database_of, find_binaries, start
from tests.support.site import write_study
from vnuma.store import runs
from vnuma.store.open import open_store
from vnuma.store.samples import iter_samples

PATIENCE_S = 120
STORE_PASSWORD = secrets.token_urlsafe()


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    """Where jobs run."""
    return Worker(on_this_machine, str(tmp_path / "home"))


@pytest.fixture(scope="module")
def networked() -> Iterator[Cluster]:
    """A server whose loopback asks for a password; a pod does not see this machine's sockets."""
    server = start(find_binaries(), free_port())
    ways = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
    (server.folder / "data" / "pg_hba.conf").write_text(ways, encoding="ascii")
    server.execute("/postgres", f"ALTER ROLE owner PASSWORD '{STORE_PASSWORD}'", "SELECT pg_reload_conf()")
    yield server
    server.stop()


@pytest.fixture
def url(networked: Cluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty store. The test has its password in its environment, which no worker gets."""
    monkeypatch.setenv("PGPASSWORD", STORE_PASSWORD)
    return f"postgresql://owner@127.0.0.1:{networked.port}/{database_of(networked.new_store())}"


def site(folder: Path, running: LabHandle, url: str, worker: Worker, **study: Any) -> Launcher:
    """The site of awx/project with the lab's addresses and CA, and credentials that know its passwords."""
    hosts = load(AWX / "project/inventory/hosts.yml")
    group = hosts["all"]["children"]["vnuma_vms"]
    vcenter, server = running.vcenter, running.vms["sql16"]
    group["vars"]["vnuma_vcenter"] |= {"host": vcenter.host, "port": vcenter.port, "ca_file": "ca.pem"}
    sql16 = group["hosts"]["sql16"]
    sql16["vnuma_vm"] = server.path
    sql16["vnuma_sql"] |= {"host": server.host, "port": server.port, "ca_file": "ca.pem"}
    inputs = {
        "vnuma vCenter": {"user": vcenter.user, "password": vcenter.password},
        "vnuma SQL Server": {"user": server.user, "password": server.password},
        "vnuma store": {"url": url, "password": STORE_PASSWORD, "home": worker.home},
    }
    project = {
        "ca.pem": vcenter.ca_file.read_text(encoding="ascii"),
        "studies/first.yml": write_study(folder, **study).read_text(encoding="utf-8"),
    }
    return Launcher(folder, hosts, inputs, project, worker)


def seen(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def samples(url: str, run: str) -> int:
    """How many iterations the run has stored."""
    with open_store(url).read() as connection:
        return sum(1 for _ in iter_samples(connection, runs.get_run(connection, run).id))


@pytest.mark.long
def test_the_workflow_s_nodes_one_after_the_other(
    tmp_path: Path, lab: LabFactory, url: str, worker: Worker
) -> None:
    """Plan, run, report: the plan changes nothing, and its artifact names the run for the other two.

    No file that a job leaves contains a password.
    """
    running = lab()
    before = settings_now(running)
    awx = site(tmp_path, running, url, worker)

    plan = awx.launch("vnuma plan")
    assert (plan.status, plan.artifacts) == ("successful", {"vnuma_run": "small.1"}), plan.text
    assert settings_now(running) == before

    ran = awx.launch("vnuma run", **plan.artifacts)
    report = awx.launch("vnuma report", **plan.artifacts)

    assert ran.status == "successful", ran.text
    assert settings_now(running) == before
    assert report.status == "successful", report.text
    audit = vnuma_here("audit", "--format", "json", "--store", url).out
    assert {line["run"] for line in json.loads(audit)["changes"]} == {"small.1"}
    files = [path for path in tmp_path.glob("job*/**/*") if path.is_file()]
    # The runner's `command` file has the job's environment; AWX masks it by the credential's secret fields.
    kept = b"".join(path.read_bytes() for path in files if path.name != "command")
    assert [one for one in (running.vcenter.password, STORE_PASSWORD) if one.encode() in kept] == []


@pytest.mark.long
def test_a_run_is_restored_when_cancelled_and_continued_when_stopped(
    tmp_path: Path, lab: LabFactory, url: str, worker: Worker
) -> None:
    """A cancelled job restores nothing, so the workflow's restore does; a stopped one restores by itself."""
    running = lab()
    before = settings_now(running)
    awx = site(tmp_path, running, url, worker, design={"blocks": 3})
    run = awx.launch("vnuma plan").artifacts

    first = awx.start("vnuma run", **run)
    seen(lambda: samples(url, run["vnuma_run"]) > 0)
    cancelled = first.cancel()
    changed = settings_now(running)
    restored = awx.launch("vnuma restore", **run)

    assert cancelled.status == "canceled"
    assert changed != before
    assert restored.status == "successful", restored.text
    assert settings_now(running) == before

    there = samples(url, run["vnuma_run"])
    second = awx.start("vnuma run", **run)
    seen(lambda: samples(url, run["vnuma_run"]) > there)
    stop = awx.launch("vnuma stop", **run)
    stopped = second.wait()

    assert stop.status == "successful", stop.text
    assert stopped.status == "failed", stopped.text
    assert settings_now(running) == before
    third = awx.launch("vnuma run", **run)
    assert third.status == "successful", third.text


@pytest.mark.long
def test_the_check_fails_on_findings_and_records_them(
    tmp_path: Path, lab: LabFactory, url: str, worker: Worker
) -> None:
    """At the survey's severity, with the findings in the job's output."""
    awx = site(tmp_path, lab(), url, worker)

    lenient = awx.launch("vnuma check")
    strict = awx.launch("vnuma check", vnuma_fail_on="warn")

    assert (lenient.status, strict.status) == ("successful", "failed"), lenient.text + strict.text
    assert "sql16" in vnuma_here("check", "--history", "--store", url).text
