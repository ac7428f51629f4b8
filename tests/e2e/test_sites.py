"""A run over several sites: each site's VMs are worked on by a process there, with one store."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from tests.conftest import LabFactory
from tests.support.cli import vnuma_here
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.postgresql import Cluster
from tests.support.site import write_study
from tests.support.sites import samples_of, write_sites
from vnuma.engine.lease.supervision import Supervisor, claim_supervision
from vnuma.store import leases, runs, tables
from vnuma.store.open import Store, open_store
from vnuma.store.rows import RunState

VMS = [{"name": "sql-a"}, {"name": "sql-b"}]


def test_a_site_is_measured_from_there_and_the_rest_by_the_controller(
    tmp_path: Path, lab: LabFactory, postgresql: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process restores its own VMs, the last one ends the run, and nothing is measured twice."""
    url = postgresql.new_store()
    monkeypatch.setenv("VNUMA_STORE", url)
    running = lab(vms=VMS)
    before = {name: settings_now(running, name) for name in ("sql-a", "sql-b")}
    inventory = write_sites(tmp_path, running, sql_b="site-b")
    study = write_study(tmp_path, vms=["sql-a", "sql-b"])
    store = open_store(url)

    planned = vnuma_here("plan", study, "-i", inventory)
    created = vnuma_here("run", study, "-i", inventory, "--create-only")
    there = vnuma_here("run", "--resume", "small.1", "--site", "site-b", "-i", inventory)
    with store.read() as connection:
        between = runs.get_run(connection, "small.1").state
    again = vnuma_here("run", "--resume", "small.1", "--site", "site-b")
    here = vnuma_here("run", "--resume", "small.1")

    assert planned.code == 0, planned.text
    assert (created.code, there.code, again.code, here.code) == (0, 0, 0, 0), there.text + here.text
    assert between is RunState.STOPPED
    with store.read() as connection:
        run = runs.get_run(connection, "small.1")
        known = {vm.name: (vm.node, vm.at_baseline) for vm in leases.vms_of_run(connection, run.id)}
    assert (run.state, run.simulated is None) == (RunState.FINISHED, False)
    assert known == {"sql-a": (None, True), "sql-b": ("site-b", True)}
    assert samples_of(store, "small.1") == [4, 4]
    listed = json.loads(vnuma_here("status", "small.1", "--format", "json").out)
    assert listed["runs"][0]["vm_names"] == ["sql-a"]
    assert {name: settings_now(running, name) for name in before} == before


@pytest.fixture
def stored(
    tmp_path: Path, shared_lab: LabHandle, postgresql: Cluster, monkeypatch: pytest.MonkeyPatch
) -> tuple[Store, Path]:
    """A stored run of one VM at site-b, and its inventory."""
    url = postgresql.new_store()
    monkeypatch.setenv("VNUMA_STORE", url)
    inventory = write_sites(tmp_path, shared_lab, **{next(iter(shared_lab.vms)): "site-b"})
    study = write_study(tmp_path, vms=[next(iter(shared_lab.vms))])
    assert vnuma_here("run", study, "-i", inventory, "--create-only").code == 0
    return open_store(url), inventory


def _another_version(store: Store) -> None:
    with store.write() as connection:
        connection.execute(update(tables.run).values(product_version="0.0.1"))


def _worked_on(store: Store) -> None:
    with store.read() as connection:
        part = runs.at_site(connection, runs.get_run(connection, "small.1"), "site-b")
    claim_supervision(store, part, Supervisor(1, "elsewhere"))


@pytest.mark.parametrize(
    ("change", "run", "site", "code", "words"),
    [
        (None, "small.2", "site-b", 3, "no run 'small.2'"),
        (None, "small.1", "site-c", 3, "Its sites: site-b"),
        (_another_version, "small.1", "site-b", 4, "was created by vnuma 0.0.1"),
        (_worked_on, "small.1", "site-b", 8, "supervised by process 1"),
    ],
    ids=["no such run", "no such site", "another version", "twice at once"],
)
def test_a_site_s_process_that_may_not_work_says_why(
    stored: tuple[Store, Path],
    change: Callable[[Store], None] | None,
    run: str,
    site: str,
    code: int,
    words: str,
) -> None:
    """With the exit code of its kind, and nothing is added to the run."""
    store, inventory = stored
    if change:
        change(store)

    refused = vnuma_here("run", "--resume", run, "--site", site, "-i", inventory)

    assert (refused.code, words in refused.err) == (code, True), refused.text
    with store.read() as connection:
        assert leases.vms_of_run(connection, runs.get_run(connection, "small.1").id) == ()


@pytest.mark.parametrize("words", [["run", "small.yml"], ["run", "--resume", "small.1", "--site", "site-b"]])
def test_a_store_in_a_file_is_refused_where_there_are_sites(
    tmp_path: Path, shared_lab: LabHandle, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """At the controller as at the site, which could not reach the file."""
    monkeypatch.setenv("VNUMA_STORE", f"sqlite:///{tmp_path / 'vnuma.db'}")
    monkeypatch.chdir(tmp_path)
    inventory = write_sites(tmp_path, shared_lab, **{next(iter(shared_lab.vms)): "site-b"})
    write_study(tmp_path, vms=[next(iter(shared_lab.vms))])

    refused = vnuma_here(*words, "-i", inventory)

    assert refused.code == 4, refused.text


def test_a_controller_waits_for_its_sites_and_says_which_has_not_begun(
    stored: tuple[Store, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a sign of life it ends, names the site and the command, and the run stays to be continued."""
    store, inventory = stored
    monkeypatch.setattr("vnuma.engine.run.sites.GONE_AFTER", timedelta(seconds=1))

    ended = vnuma_here("run", "--resume", "small.1", "-i", inventory)

    assert ended.code == 4, ended.text
    with store.read() as connection:
        assert runs.get_run(connection, "small.1").state is RunState.STOPPED
