"""Two sites whose processes real Receptor daemons start; the store is reached through the mesh."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from tests.conftest import LabFactory
from tests.support.cli import TIMEOUT_S, command
from tests.support.installation import ROOT
from tests.support.looking import settings_now
from tests.support.postgresql import database_of, find_binaries, start
from tests.support.receptor import Daemon, ask, find_receptor, free_port
from tests.support.site import write_study
from tests.support.sites import samples_of, write_sites
from vnuma.store import attempts, runs, vms
from vnuma.store.open import Store, open_store
from vnuma.store.rows import RunState
from vnuma.store.sites import sites_of_run
from vnuma.store.types import utc_now

SITES = {"site-b": "sql-b", "site-c": "sql-c"}
TOGETHER = {"neighbours": "together"}
RETRIED = {"attempts_per_cell": 3}
CUT = timedelta(seconds=5)


@dataclass
class Mesh:
    """A hub, and a daemon at each site that starts `vnuma`. Nobody reaches the store but through the hub."""

    folder: Path
    daemons: dict[str, Daemon] = field(default_factory=dict)

    def start(self, node: str, env: dict[str, str] | None = None) -> None:
        """Start a node's daemon, or start it again."""
        self.daemons[node] = Daemon(find_receptor(), self.folder / node, env)

    def stop(self) -> None:
        """End every daemon."""
        for daemon in self.daemons.values():
            daemon.stop()

    def begin(self, site: str, arguments: str) -> str:
        """Start vnuma at the site; returns the unit's name."""
        wanted = {"command": "work", "subcommand": "submit", "node": site, "worktype": "vnuma"}
        answer = ask(self.folder / "hub" / "control", {**wanted, "params": arguments}, b"")
        found = re.search(r"created with ID (\w+)", answer)
        assert found, answer
        return found[1]

    def is_over(self, unit: str) -> bool:
        """Whether the unit's process has ended, as far as the hub knows."""
        told = json.loads(ask(self.folder / "hub" / "control", f"work status {unit}"))
        return told["StateName"] in ("Succeeded", "Failed", "Canceled")

    def sees(self, *nodes: str) -> bool:
        """Whether the hub reaches these nodes."""
        with suppress(OSError, ValueError):
            told = json.loads(ask(self.folder / "hub" / "control", "status"))
            return set(nodes) <= set(told.get("RoutingTable") or {})
        return False


def write_node(folder: Path, node: str, *sections: Mapping[str, object]) -> None:
    """A node's folder with its configuration."""
    (folder / node).mkdir()
    own = [
        {"node": {"id": node, "datadir": str(folder / node / "data")}},
        {"log-level": "error"},
        {"control-service": {"service": "control", "filename": str(folder / node / "control")}},
    ]
    (folder / node / "receptor.yml").write_text(json.dumps([*own, *sections]), encoding="utf-8")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A path that is short enough for a Unix socket."""
    with tempfile.TemporaryDirectory(prefix="mesh-") as made:
        yield Path(made)


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait until it holds."""
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def measured(store: Store) -> set[str]:
    """The VMs with an attempt that measures."""
    with store.read() as connection:
        row = runs.get_run(connection, "small.1")
        names = {vm.id: vm.name for vm in vms.vms_of_run(connection, row.id)}
        return {names[line.vm_id] for line in attempts.lines_of_run(connection, row.id)}


def silent(store: Store) -> bool:
    """Whether the last sign of life of each site in the store is old enough to show the cut."""
    with store.read() as connection:
        parts = sites_of_run(connection, runs.get_run(connection, "small.1").id)
    return all(part.heartbeat_at and utc_now() - part.heartbeat_at > CUT for part in parts)


def ended(store: Store) -> set[str]:
    """The sites that have stored the end of their parts."""
    with store.read() as connection:
        parts = sites_of_run(connection, runs.get_run(connection, "small.1").id)
    return {part.node for part in parts if part.end is not None}


def begun(store: Store) -> bool:
    """Whether the run is stored."""
    with store.read() as connection:
        return bool(runs.list_runs(connection))


@contextmanager
def meshed(folder: Path, store_port: int, database: str) -> Iterator[Mesh]:
    """A hub that carries connections to the store, and the sites' daemons."""
    mesh, port = Mesh(folder), free_port()
    listener: dict[str, object] = {"tcp-listener": {"port": port, "bindaddr": "127.0.0.1"}}
    carried = {"tcp-client": {"service": "store", "address": f"127.0.0.1:{store_port}"}}
    write_node(folder, "hub", listener, carried)
    with ExitStack() as running:
        running.callback(mesh.stop)
        mesh.start("hub")
        for site in SITES:
            near = free_port()
            there = {"port": near, "bindaddr": "127.0.0.1", "remotenode": "hub", "remoteservice": "store"}
            program = {
                "worktype": "vnuma",
                "command": str(ROOT / ".venv/bin/vnuma"),
                "allowruntimeparams": True,
            }
            peer = {"tcp-peer": {"address": f"127.0.0.1:{port}"}}
            write_node(folder, site, peer, {"tcp-server": there}, {"work-command": program})
            url = f"postgresql://owner@127.0.0.1:{near}/{database}"
            mesh.start(site, {"VNUMA_STORE": url, "VNUMA_HOME": str(folder / site / "home")})
        until(lambda: mesh.sees(*SITES), "the hub does not reach the sites")
        yield mesh


@pytest.mark.long
def test_a_cut_link_loses_no_sample_of_two_sites(folder: Path, tmp_path: Path, lab: LabFactory) -> None:
    """Both sites lose the store with the link, in a cell; healed, every cell is valid once and no VM changed.

    A process that gave the store up meanwhile is started again, as AWX or systemd would.
    """
    find_receptor()
    with ExitStack() as running:
        server = start(find_binaries(), free_port())
        running.callback(server.stop)
        url = server.new_store()
        there = lab(vms=[{"name": name} for name in SITES.values()])
        before = {name: settings_now(there, name) for name in SITES.values()}
        inventory = write_sites(tmp_path, there, **{vm.replace("-", "_"): site for site, vm in SITES.items()})
        mesh = running.enter_context(meshed(folder, server.port, database_of(url)))
        study = write_study(
            tmp_path, vms=list(SITES.values()), design=TOGETHER, limits={"attempts_per_cell": 3}
        )
        store, env = open_store(url), {**os.environ, "VNUMA_STORE": url}

        run = running.enter_context(
            subprocess.Popen(command("run", study, "-i", inventory), env=env, stderr=subprocess.PIPE)
        )
        until(lambda: begun(store), "the run is not stored")
        words = "run --resume small.1 -i " + str(inventory)
        units = {site: mesh.begin(site, f"{words} --site {site}") for site in SITES}
        until(lambda: measured(store) == set(SITES.values()), "not both sites measure")
        mesh.daemons["hub"].stop()
        until(lambda: silent(store), "a site still reaches the store")
        mesh.start("hub")
        until(lambda: mesh.sees(*SITES), "the hub does not reach the sites again")
        while run.poll() is None:
            for site, unit in units.items():
                if mesh.is_over(unit) and site not in ended(store):
                    units[site] = mesh.begin(site, f"{words} --site {site}")
            time.sleep(0.5)
        assert run.stderr is not None
        said = run.stderr.read().decode()

        assert run.returncode == 0, said
        with store.read() as connection:
            assert runs.get_run(connection, "small.1").state is RunState.FINISHED
        assert samples_of(store, "small.1") == [4, 4]
        assert {name: settings_now(there, name) for name in before} == before
