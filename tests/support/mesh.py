"""A mesh of real daemons on loopback: a controller and nodes, each node with an environment of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.installation import ROOT
from tests.support.namespace import Namespace
from tests.support.receptor import Daemon, find_receptor, free_port
from vnuma.engine.mesh.control import nodes_seen
from vnuma.engine.mesh.node_config import Node, control_socket
from vnuma.engine.mesh.node_files import init_controller, init_node
from vnuma.errors import EnvironmentProblem

CONTROLLER = "controller"

_SEEN_S = 60


@dataclass
class Mesh:
    """Daemons by their nodes' names; the controller's is CONTROLLER."""

    program: Path
    folders: dict[str, Path]
    environments: dict[str, Mapping[str, str]]
    daemons: dict[str, Daemon]
    namespace: Namespace | None = None
    """Where the controller's daemon runs, if not with the nodes'."""

    @property
    def control(self) -> Path:
        """The socket of the controller's daemon."""
        return control_socket(self.folders[CONTROLLER])

    def start(self, name: str) -> None:
        """Start a node's daemon, or start it again with its data."""
        prefix = self.namespace.prefix if self.namespace and name == CONTROLLER else ()
        self.daemons[name] = Daemon(self.program, self.folders[name], self.environments[name], prefix)

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

    def _wait(self, done: Callable[[frozenset[str]], bool], why: str) -> None:
        until = time.monotonic() + _SEEN_S
        while time.monotonic() < until:
            with suppress(EnvironmentProblem):
                if done(nodes_seen(self.control)):
                    return
            time.sleep(0.05)
        logs = "\n".join(daemon.log.read_text(errors="replace") for daemon in self.daemons.values())
        raise AssertionError(f"the controller {why}:\n{logs}")


@contextmanager
def mesh_of(
    base: Path,
    nodes: Mapping[str, Mapping[str, str]],
    store: str | None = None,
    namespace: Namespace | None = None,
) -> Iterator[Mesh]:
    """A mesh whose files are in `base`; it ends with the `with`. Skips the test without a daemon.

    `nodes` are their environments by name. `store` is HOST:PORT, to which the mesh carries connections. The
    controller's daemon runs in `namespace`, into which nodes can dial its port, and nothing else.
    """
    program, own, port = find_receptor(), str(ROOT / ".venv" / "bin" / "vnuma"), free_port()
    controller = Node(CONTROLLER, base / CONTROLLER, own)
    folders = {CONTROLLER: init_controller(base, controller, f"127.0.0.1:{port}", store)}
    folders |= {name: init_node(base, Node(name, base / name, own)) for name in nodes}
    environments: dict[str, Mapping[str, str]] = {CONTROLLER: {}}
    environments |= {name: {"VNUMA_NODE": name, **env} for name, env in nodes.items()}
    mesh = Mesh(program, folders, environments, {}, namespace)
    with ExitStack() as running:
        if namespace:
            running.enter_context(namespace.let_in(port, base))
        running.callback(mesh.stop)
        for name in folders:
            mesh.start(name)
        mesh.wait_until_seen(*nodes)
        yield mesh
