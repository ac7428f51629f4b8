"""A mesh of real daemons on loopback: a controller and nodes, each node with an environment of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.installation import ROOT
from tests.support.receptor import Daemon, find_receptor, free_port
from vnuma.engine.mesh.control import nodes_seen
from vnuma.engine.mesh.node_files import Node, control_socket, init_controller, init_node
from vnuma.errors import EnvironmentProblem

_SEEN_S = 60


@dataclass
class Mesh:
    """Daemons by their nodes' names; the controller's is `controller`."""

    program: Path
    folders: dict[str, Path]
    environments: dict[str, Mapping[str, str]]
    daemons: dict[str, Daemon]

    @property
    def control(self) -> Path:
        """The socket of the controller's daemon."""
        return control_socket(self.folders["controller"])

    def start(self, name: str) -> None:
        """Start a node's daemon, or start it again with its data."""
        self.daemons[name] = Daemon(self.program, self.folders[name], self.environments[name])

    def stop(self) -> None:
        """End every daemon."""
        for daemon in self.daemons.values():
            daemon.stop()

    def wait_until_seen(self, *nodes: str) -> None:
        """Return once the controller's daemon reaches these nodes."""
        self._wait(lambda seen: set(nodes) <= seen, f"does not reach {nodes}")

    def wait_until_hidden(self, node: str) -> None:
        """Return once the controller's daemon does not reach this node."""
        self._wait(lambda seen: node not in seen, f"still reaches {node}")

    def _wait(self, done: object, why: str) -> None:
        until = time.monotonic() + _SEEN_S
        while time.monotonic() < until:
            try:
                if callable(done) and done(nodes_seen(self.control)):
                    return
            except EnvironmentProblem:
                pass
            time.sleep(0.05)
        logs = "\n".join(daemon.log.read_text(errors="replace") for daemon in self.daemons.values())
        raise AssertionError(f"the controller {why}:\n{logs}")


@contextmanager
def mesh_of(base: Path, nodes: Mapping[str, Mapping[str, str]], store: str | None = None) -> Iterator[Mesh]:
    """A mesh whose files are in `base`; it ends with the `with`. Skips the test without a daemon.

    `nodes` are their environments by name. `store` is HOST:PORT, to which the mesh carries connections.
    """
    program, own = find_receptor(), str(ROOT / ".venv" / "bin" / "vnuma")
    address = f"127.0.0.1:{free_port()}"
    folders = {
        "controller": init_controller(base, Node("controller", base / "controller", own), address, store)
    }
    folders |= {name: init_node(base, Node(name, base / name, own)) for name in nodes}
    environments: dict[str, Mapping[str, str]] = {
        "controller": {},
        **{name: {"VNUMA_NODE": name, **env} for name, env in nodes.items()},
    }
    mesh = Mesh(program, folders, environments, {})
    with ExitStack() as running:
        running.callback(mesh.stop)
        for name in folders:
            mesh.start(name)
        mesh.wait_until_seen(*nodes)
        yield mesh
