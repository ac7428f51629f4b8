"""The controller's side of a run over sites, with a daemon that answers as Receptor's control service."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer
from threading import Thread

import pytest
from sqlalchemy import text, update

from tests.report.build import study_text
from tests.store.build import new_vm
from vnuma.engine.access.inventory import read_targets
from vnuma.engine.lease.supervision import SILENT_AFTER, Supervisor, claim_supervision
from vnuma.engine.mesh.request import error_document
from vnuma.engine.sites import following
from vnuma.engine.sites.following import LAUNCHES, SitesAtWork
from vnuma.errors import EnvironmentProblem, NotAtBaseline, StoreError
from vnuma.store import runs, sites, tables
from vnuma.store.open import Store, default_url, open_store
from vnuma.store.rows import Run
from vnuma.store.types import utc_now

NODES = ("site-b", "site-c")

THERE = Supervisor(os.getppid(), "another-host")
"""A process that only its heartbeat shows."""

OLD = EnvironmentProblem("an earlier outcome")


@dataclass
class Daemon:
    """Reaches all nodes; each unit that is submitted ends at once, without output, or as `state` says."""

    work_list: bytes = b"{}"
    state: bytes = b"Failed"
    released: list[str] = field(default_factory=list)
    submitted: list[str] = field(default_factory=list)

    def answer(self, command: bytes) -> bytes:
        """The line that follows a command."""
        words = command.split()
        if command.startswith(b"{"):
            self.submitted.append(json.loads(command)["node"])
            return b"Work unit created with ID u%d. Send stdin data and EOF." % len(self.submitted)
        if words[:2] == [b"work", b"list"]:
            return self.work_list
        if words[:2] == [b"work", b"results"]:
            return b"Streaming results for work unit"
        if words[:2] == [b"work", b"status"]:
            return b'{"StateName": "%s", "Detail": "signal: killed"}' % self.state
        if words[:2] == [b"work", b"release"]:
            self.released.append(words[2].decode())
        return json.dumps({"RoutingTable": dict.fromkeys(NODES, "")}).encode()


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """Listens until the test ends."""
    told = Daemon()

    class Control(StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"Receptor Control, node controller\n")
            command = self.rfile.readline()
            self.wfile.write(told.answer(command) + b"\n")
            if command.startswith(b"{"):
                self.rfile.read()
                self.wfile.write(b"{}\n")

    monkeypatch.setenv("VNUMA_RECEPTOR_SOCKET", str(tmp_path / "control.sock"))
    with ThreadingUnixStreamServer(str(tmp_path / "control.sock"), Control) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        yield told
        server.shutdown()
        serving.join()


@dataclass(frozen=True)
class Going:
    """A run of a VM at each node, which has left them, and the controller's view of the nodes."""

    store: Store
    run: Run
    elsewhere: SitesAtWork

    def part(self, node: str) -> Run:
        """A node's part of the run."""
        with self.store.read() as connection:
            return runs.at_site(connection, self.run, node)


@pytest.fixture
def going(daemon: Daemon, tmp_path: Path) -> Going:
    """Before anything is submitted."""
    access = {"host": "127.0.0.1", "port": 1, "user": "u", "password": {"env": "X"}}
    hosts = {
        f"sql-{node}": {"vnuma_node": node, "vnuma_vm": "sql", "vnuma_vcenter": access, "vnuma_sql": access}
        for node in NODES
    }
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
    store = open_store(default_url(tmp_path))
    with store.write() as connection:
        run = runs.create_run(connection, runs.save_study(connection, "quick", study_text()), seed=7)
        sites.add_sites(connection, run.id, NODES)
    for node in NODES:
        new_vm(store, run, key=f"vc/{node}", name=f"sql-{node}", arms=1, node=node)
    return Going(store, run, SitesAtWork(store, run, read_targets(inventory), inventory))


def test_a_node_whose_process_died_for_good_is_not_called_at_work(going: Going, daemon: Daemon) -> None:
    """However fresh its last heartbeat: its end is known from the daemon, and the reason is told."""
    going.elsewhere.start()
    for node in NODES:
        claim_supervision(going.store, going.part(node), THERE)
    for _ in range(LAUNCHES):
        going.elsewhere.look()

    told = going.elsewhere.problems()

    assert not going.elsewhere.is_at_work()
    assert daemon.submitted == [*NODES] * LAUNCHES
    assert [type(problem) for problem in told] == [NotAtBaseline] * 2
    assert "sql-site-b may not be at baseline" in str(told[0])
    assert "signal: killed" in str(told[0])
    assert "still at work" not in str(told[0])


def test_a_silent_process_is_replaced_and_not_killed(
    going: Going, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may restore a VM just then; behind a link that was cut it first has the time for a heartbeat."""
    daemon.state = b"Running"
    going.elsewhere.start()
    for node in NODES:
        claim_supervision(going.store, going.part(node), THERE)
    with going.store.write() as connection:
        long_ago = utc_now() - 2 * SILENT_AFTER
        connection.execute(update(tables.site).values(heartbeat_at=long_ago, unit_at=long_ago))

    going.elsewhere.look()
    assert daemon.submitted == [*NODES]

    monkeypatch.setattr(following, "HEARD_AFTER", timedelta(0))
    going.elsewhere.look()
    assert (daemon.submitted, daemon.released) == ([*NODES, *NODES], [])

    with going.store.write() as connection:
        connection.execute(update(tables.site).values(end_json={"problems": []}, supervisor_pid=None))
    going.elsewhere.look()
    assert sorted(daemon.released) == ["u1", "u2", "u3", "u4"]


def test_nobody_waits_for_work_that_was_never_submitted(going: Going, daemon: Daemon) -> None:
    """The daemon fails before the first: VMs that are away are named, and no earlier outcome is repeated."""
    with going.store.write() as connection:
        for node in NODES:
            sites.set_end(connection, going.run.id, node, {"problems": [error_document(OLD)]})
    daemon.work_list = b"ERROR: no space left on device"

    with pytest.raises(EnvironmentProblem, match="no space left"):
        going.elsewhere.start()
    going.elsewhere.look()

    told = [str(problem) for problem in going.elsewhere.problems()]
    assert not going.elsewhere.is_at_work()
    assert [f"sql-{node} may not be at baseline" in words for node, words in zip(NODES, told, strict=True)]
    assert [words for words in told if OLD.what in words] == []
    assert daemon.submitted == []


def test_what_was_submitted_before_an_error_is_followed(going: Going, daemon: Daemon) -> None:
    """The store refuses the second node's part: only that one is over."""
    with going.store.write() as connection:
        connection.execute(
            text(
                "CREATE TRIGGER refused BEFORE UPDATE ON site WHEN NEW.node = 'site-c' "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        )

    with pytest.raises(StoreError, match="refused"):
        going.elsewhere.start()

    claim_supervision(going.store, going.part("site-b"), THERE)
    told = [str(problem) for problem in going.elsewhere.problems()]
    assert daemon.submitted == ["site-b"]
    assert going.elsewhere.is_at_work()
    assert "sql-site-c may not be at baseline" in told[0]
    assert "site-b is still at work" in told[1]


def test_a_unit_whose_name_the_store_refused_is_followed_all_the_same(going: Going, daemon: Daemon) -> None:
    """Its process dies: that is seen at the next look, and not after ten minutes without a heartbeat."""
    with going.store.write() as connection:
        connection.execute(
            text(
                "CREATE TRIGGER refused BEFORE UPDATE ON site WHEN NEW.unit IS NOT NULL "
                "BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        )
    with pytest.raises(StoreError, match="refused"):
        going.elsewhere.start()
    with going.store.write() as connection:
        connection.execute(text("DROP TRIGGER refused"))
    claim_supervision(going.store, going.part("site-b"), THERE)

    going.elsewhere.look()

    assert daemon.submitted == ["site-b", "site-b"]
    with going.store.read() as connection:
        units = {site.node: site.unit for site in sites.sites_of_run(connection, going.run.id)}
    assert units["site-b"] == "u2"
