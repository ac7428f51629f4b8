"""`vnuma restore` where some VMs are reached by nodes alone."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.report.build import study_text
from tests.store.build import new_vm
from tests.support.cli import vnuma_here
from vnuma.engine.lease.supervision import Supervisor, claim_supervision
from vnuma.engine.restore.restore_leftovers import Wanted
from vnuma.engine.sites.restoring import restore_everywhere, show_everywhere
from vnuma.store import runs, sites
from vnuma.store.open import Store, default_url, open_store
from vnuma.store.rows import Run

BESIDE = Supervisor(os.getppid(), socket.gethostname())
"""Another process of this machine, which lives."""


@dataclass(frozen=True)
class Left:
    """A store whose runs have left VMs; a mesh whose daemon does not answer."""

    folder: Path
    store: Store

    def run(self, study: str, key: str, name: str, node: str | None = None) -> Run:
        """A run that has left this VM, with an inventory of its own."""
        place = self.folder / f"{study}.json"
        host = {"vnuma_vm": name, "vnuma_vcenter": {}, "vnuma_sql": {}}
        for access in ("vnuma_vcenter", "vnuma_sql"):
            host[access] = {"host": "127.0.0.1", "port": 1, "user": "u", "password": {"env": "X"}}
        hosts = {name: host | ({"vnuma_node": node} if node else {})}
        place.write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
        with self.store.write() as connection:
            saved = runs.save_study(connection, study, study_text())
            run = runs.create_run(connection, saved, seed=7, inventory=str(place))
            sites.add_sites(connection, run.id, [node] if node else [])
        new_vm(self.store, run, key=key, name=name, node=node)
        with self.store.read() as connection:
            return runs.at_site(connection, run, node)


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Left:
    """Without a run yet."""
    monkeypatch.setenv("VNUMA_RECEPTOR_SOCKET", str(tmp_path / "control.sock"))
    return Left(tmp_path, open_store(default_url(tmp_path)))


def test_a_vm_is_restored_here_though_a_node_has_one_of_the_same_name(left: Left) -> None:
    """Of two runs, each with an inventory of its own: none of the two VMs is passed over."""
    for run in (left.run("here", "vc-a/1", "sql01"), left.run("there", "vc-b/1", "sql01", "site-b")):
        claim_supervision(left.store, run, BESIDE)

    report = restore_everywhere(left.store, Wanted())

    assert [problem.what for problem in report.problems] == [
        "sql01 is in use by here.1, which is running.",
        "sql01 is in use by there.1, which is running.",
    ]


def test_a_dry_run_shows_what_is_in_use_at_a_node_without_asking_it(left: Left) -> None:
    """As the restore itself does: the node would refuse, since its VMs were named."""
    claim_supervision(left.store, left.run("there", "vc-b/1", "sql-b", "site-b"), BESIDE)

    lines, problems = show_everywhere(left.store, Wanted())

    assert (lines, problems) == (["sql-b is in use by there.1, which is running"], [])


def test_a_node_out_of_reach_hides_nothing_of_a_dry_run_but_its_own(left: Left) -> None:
    """Each node's VMs are named with it; its error follows all lines, and decides the exit code."""
    for node in ("site-b", "site-c"):
        left.run(node, f"vc/{node}", f"sql-{node}", node)
    claim_supervision(left.store, left.run("there", "vc/d", "sql-d", "site-d"), BESIDE)

    shown = vnuma_here("restore", "--dry-run", "--store", str(left.store.place.url))

    assert shown.code == 4, shown.text
    assert [line.split()[0] for line in shown.out.splitlines()] == ["sql-site-b", "sql-site-c", "sql-d"]
    assert "site-b did not show its changes" in shown.out
    assert "Receptor daemon does not answer" in shown.err
