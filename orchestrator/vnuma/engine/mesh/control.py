"""Requests to a node: signed work units over mutual TLS, by the controller's Receptor daemon.

The daemon's control socket uses lines of text, as receptorctl(1) does:
https://docs.ansible.com/projects/receptor/en/latest/receptorctl/receptorctl_index.html
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedRWPair
from pathlib import Path
from typing import Any

from vnuma.engine.mesh.node_config import ASK, TLS
from vnuma.errors import EnvironmentProblem

ANSWER_S = 180
"""Time limit for a node's answer, in seconds: it asks vCenter and SQL Server, which have shorter limits."""

_LEFT_S = 600
"""Work that ended longer ago, in seconds, is abandoned: whoever asks takes the answer at once."""

_DAEMON_S = 20
"""Time limit for the local daemon's own answers, in seconds."""

_MADE = re.compile(r"Work unit created with ID (\w+)\. Send stdin data and EOF\.")
_UNIT = re.compile(r"\w+")
_MOST = 16 << 20
"""Bytes of an answer that are read."""

_SHOWN = 400
"""Characters of an answer that is not understood."""


def ask_node(control: Path, node: str, request: dict[str, Any], limit_s: float = ANSWER_S) -> dict[str, Any]:
    """Ask a node and return its answer. Raises EnvironmentProblem: no daemon, unreachable node, no answer.

    Without an answer the node's work is cancelled, so it may change nothing: see `have_done`.
    """
    require_seen(control, node)
    unit = submit(control, node, request)
    try:
        return answer_of(control, node, unit, limit_s)
    finally:
        release(control, unit)


def have_done(control: Path, node: str, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
    """The same for work that changes VMs. Without an answer it continues: a restore is never cut short.

    What it leaves at the daemons is removed by `forget_ended`.
    """
    require_seen(control, node)
    unit = submit(control, node, request)
    answer = answer_of(control, node, unit, limit_s)
    release(control, unit)
    return answer


def answer_of(control: Path, node: str, unit: str, limit_s: float = ANSWER_S) -> dict[str, Any]:
    """Wait for a work unit to end and parse its last output as JSON. Raises EnvironmentProblem."""
    answer = _results(control, node, unit, limit_s)
    state = unit_state(control, unit)
    try:
        document = json.loads(answer.rstrip().rpartition(b"\n")[2])
    except ValueError:
        raise EnvironmentProblem(
            f"{node} gave no answer: {_excerpt(answer) or state.detail or 'it gave no reason'}.",
            fix=f"On {node}: journalctl -u vnuma-mesh",
        ) from None
    if not isinstance(document, dict):
        raise EnvironmentProblem(f"{node} gave an answer that is not understood.", fix=_SAME_VERSION)
    return document


def _excerpt(answer: bytes) -> str:
    """What the node's program printed instead of an answer, in one line."""
    return " ".join(answer.decode("utf-8", "replace").split())[:_SHOWN].rstrip(".")


@dataclass(frozen=True)
class UnitState:
    """A work unit's state as the controller's daemon last learnt it."""

    over: bool
    """Whether its process has ended in any way, or could not be started."""
    detail: str = ""


_OVER = {"Succeeded", "Failed", "Canceled"}
"""Receptor's final states; the others are Pending and Running."""


def unit_state(control: Path, unit: str) -> UnitState:
    """The state of a work unit. Raises EnvironmentProblem for a silent daemon or an unknown unit."""
    told = _command(control, f"work status {_named(unit)}")
    return UnitState(told.get("StateName") in _OVER, str(told.get("Detail") or "").strip())


def release(control: Path, unit: str) -> None:
    """Remove a work unit and its files from both daemons; from the node's as soon as it is reachable."""
    with suppress(EnvironmentProblem):
        _command(control, f"work release {_named(unit)}")


def forget_ended(control: Path, keep: Collection[str]) -> None:
    """Remove our abandoned work units: a killed controller left them, or a daemon that did not answer then.

    The units in `keep` are not touched. Raises EnvironmentProblem for a silent daemon.
    """
    for unit, told in _command(control, "work list").items():
        ours = isinstance(told, dict) and (told.get("ExtraData") or {}).get("RemoteWorkType") == ASK
        if ours and told.get("StateName") in _OVER and unit not in keep and _age_s(control, unit) > _LEFT_S:
            release(control, unit)


def _age_s(control: Path, unit: str) -> float:
    """Seconds since the unit's state was written; 0 if unknown."""
    written = [file.stat().st_mtime for file in control.parent.glob(f"data/*/{_named(unit)}/status")]
    return time.time() - max(written, default=time.time())


def nodes_seen(control: Path) -> frozenset[str]:
    """The nodes that the mesh reaches now. Raises EnvironmentProblem for a silent daemon."""
    return frozenset(_command(control, "status").get("RoutingTable") or {})


_SAME_VERSION = "Install the same version of vnuma on controller and node."


def require_seen(control: Path, node: str) -> None:
    """Raise EnvironmentProblem unless the mesh reaches the node now."""
    seen = nodes_seen(control)
    if node not in seen:
        others = ", ".join(sorted(seen)) or "no node"
        raise EnvironmentProblem(
            f"The mesh does not reach {node} now (it reaches: {others}).",
            fix=f"On {node}: systemctl status vnuma-mesh. Then check that it may connect to the controller.",
        )


def submit(control: Path, node: str, request: dict[str, Any]) -> str:
    """Submit signed work to a node, which continues even if the connection is lost; returns the
    unit's name.
    """
    text = json.dumps(request)
    wanted = {
        "command": "work",
        "subcommand": "submit",
        "node": node,
        "worktype": ASK,
        "tlsclient": TLS,
        "signwork": "true",
    }
    with _connected(control) as (connection, stream):
        stream.write(json.dumps(wanted).encode() + b"\n")
        stream.flush()
        line = _line(stream)
        made = _MADE.fullmatch(line)
        if not made:
            raise EnvironmentProblem(
                f"The mesh refused work for {node}: {line.removeprefix('ERROR: ')}.",
                fix="Compare the controller's receptor.yml with the one that vnuma site init wrote.",
            )
        stream.write(text.encode())
        stream.flush()
        connection.shutdown(socket.SHUT_WR)
        _line(stream)
        return made[1]


def _results(control: Path, node: str, unit: str, limit_s: float) -> bytes:
    command = f"work results {_named(unit)}\n"
    with _connected(control, limit_s) as (connection, stream):
        stream.write(command.encode())
        stream.flush()
        _line(stream)
        connection.shutdown(socket.SHUT_WR)
        try:
            return stream.read(_MOST)
        except TimeoutError:
            raise EnvironmentProblem(
                f"{node} has not answered within {limit_s:g} s.", fix=f"On {node}: journalctl -u vnuma-mesh"
            ) from None


def _command(control: Path, command: str) -> dict[str, Any]:
    """The daemon's JSON answer to a one-line command."""
    with _connected(control, _DAEMON_S) as (_, stream):
        stream.write(f"{command}\n".encode())
        stream.flush()
        line = _line(stream)
    try:
        found = json.loads(line)
    except ValueError:
        raise EnvironmentProblem(
            f"The Receptor daemon refused '{command}': {line.removeprefix('ERROR: ')}.",
            fix="journalctl -u vnuma-mesh",
        ) from None
    return found if isinstance(found, dict) else {}


def _named(unit: str) -> str:
    """The unit's name, if it is one line: it comes from the store, and a second line would be a signed
    command.

    Raises EnvironmentProblem.
    """
    if not _UNIT.fullmatch(unit):
        raise EnvironmentProblem(
            f"The store has {unit!r} as a work unit, which is not a valid name: somebody altered the store.",
            fix="Find out who can write to the store. vnuma audit verify compares the audit log with it.",
        )
    return unit


@contextmanager
def _connected(control: Path, limit_s: float = ANSWER_S) -> Iterator[tuple[socket.socket, BufferedRWPair]]:
    """A connection to the daemon. Raises EnvironmentProblem when it fails or breaks."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(limit_s)
            connection.connect(str(control))
            with connection.makefile("rwb") as stream:
                _line(stream)
                yield connection, stream
    except OSError as error:
        raise EnvironmentProblem(
            f"The controller's Receptor daemon does not answer at {control} ({error.strerror or error}).",
            fix=f"If it runs, read its log: journalctl -u vnuma-mesh. Otherwise start it: "
            f"receptor --config {control.parent / 'receptor.yml'}",
        ) from error


def _line(stream: BufferedRWPair) -> str:
    line = stream.readline(_MOST)
    if not line:
        raise ConnectionError("it closed the connection")
    return line.decode("utf-8", "replace").strip()
