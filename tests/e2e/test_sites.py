"""A run over several sites: each site's VMs are worked on by a process there, with one store."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import in_json, vnuma_here
from tests.support.lab import LabHandle
from tests.support.looking import settings_now
from tests.support.postgresql import Cluster, database_of
from tests.support.site import write_study
from tests.support.sites import samples_of, write_sites
from vnuma.store import leases, runs
from vnuma.store.open import open_store
from vnuma.store.rows import RunState

VMS = [{"name": "sql-a"}, {"name": "sql-b"}]


def test_a_site_is_measured_from_there_and_the_rest_by_the_controller(
    tmp_path: Path, lab: LabFactory, postgresql: Cluster, vnuma_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process restores its own VMs, the last one ends the run, and nothing is measured twice.

    Nothing is stored at home.
    """
    url = postgresql.new_store()
    monkeypatch.setenv("VNUMA_STORE", url)
    running = lab(vms=VMS)
    before = {name: settings_now(running, name) for name in ("sql-a", "sql-b")}
    inventory = write_sites(tmp_path, running, sql_b="site-b")
    study = write_study(tmp_path, vms=["sql-a", "sql-b"])
    store = open_store(url)

    created = vnuma_here("run", study, "-i", inventory, "--create-only")
    monkeypatch.setattr("vnuma.engine.run.sites.GONE_AFTER", timedelta(seconds=1))
    there = vnuma_here("run", "--resume", "small.1", "--site", "site-b", "-i", inventory)
    with store.read() as connection:
        between = runs.get_run(connection, "small.1").state
    again = vnuma_here("run", "--resume", "small.1", "--site", "site-b")
    here = vnuma_here("run", "--resume", "small.1")

    assert (created.code, there.code, again.code, here.code) == (0, 0, 0, 0), there.text + here.text
    assert between is RunState.STOPPED
    assert [*tmp_path.rglob("*.db"), *vnuma_home.rglob("*.db")] == []
    sessions = "SELECT sessions FROM pg_stat_database WHERE datname = %s"
    ((count,),) = postgresql.ask(sessions, database_of(url))
    assert count < 80, "a step of a cell has one connection, not one for each unit of work"
    with store.read() as connection:
        run = runs.get_run(connection, "small.1")
        known = {vm.name: (vm.site, vm.at_baseline) for vm in leases.vms_of_run(connection, run.id)}
    assert (run.state, run.simulated is None) == (RunState.FINISHED, False)
    assert known == {"sql-a": (None, True), "sql-b": ("site-b", True)}
    assert samples_of(store, "small.1") == [4, 4]
    listed = in_json("status", "small.1")
    assert listed["runs"][0]["vm_names"] == ["sql-a"]
    assert {name: settings_now(running, name) for name in before} == before


def test_a_store_in_a_file_is_refused_where_there_are_sites(
    tmp_path: Path, shared_lab: LabHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the controller as at the site, which could not reach the file."""
    monkeypatch.setenv("VNUMA_STORE", f"sqlite:///{tmp_path / 'vnuma.db'}")
    inventory = write_sites(tmp_path, shared_lab, sql16="site-b")
    study = write_study(tmp_path)

    assert vnuma_here("run", study, "-i", inventory).code == 4
    assert vnuma_here("run", "--resume", "small.1", "--site", "site-b", "-i", inventory).code == 4
