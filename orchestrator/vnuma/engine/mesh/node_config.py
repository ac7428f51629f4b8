"""A node's Receptor configuration, environment and systemd unit, as text."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from io import StringIO
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from vnuma.errors import InputError

TLS = "mesh"
"""Names of a node's TLS sections, as server and as client."""

ASK = "vnuma-ask"
"""The work type that answers one request of the controller."""

_CONTROL = "control"
_STORE = "vnuma-db"
"""The name of a Receptor service; at most 8 characters."""

LAST_PORT = 65535
_ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[(?P<six>[0-9A-Fa-f:.]+)\]):(?P<port>[1-9]\d{0,4})")


@dataclass(frozen=True)
class Mesh:
    """What all nodes share: the controller's name and address, and the store that it forwards to."""

    controller: str
    address: str
    store: str | None = None


@dataclass(frozen=True)
class Node:
    """A node to write: its name, its folder on its machine, and the path of `vnuma` there."""

    name: str
    at: Path
    program: str


def _common(node: Node, controller: str) -> list[dict[str, Any]]:
    """Settings of every node. Both sides of TLS require a certificate of the mesh's authority.

    The controller's control service is closed to the mesh, since it would sign work for anybody. A sender's
    name comes from its certificate. The first matching rule counts:
    https://docs.ansible.com/projects/receptor/en/latest/user_guide/firewall.html
    """
    rules = [
        {"action": "accept", "fromnode": controller, "toservice": _CONTROL},
        {"action": "reject", "toservice": _CONTROL},
    ]
    own = {"name": TLS, "cert": str(node.at / "node.crt"), "key": str(node.at / "node.key")}
    authority = str(node.at / "ca.crt")
    return [
        {"node": {"id": node.name, "datadir": str(node.at / "data"), "firewallrules": rules}},
        {"log-level": {"level": "info"}},
        {"tls-server": {**own, "clientcas": authority, "requireclientcert": True}},
        {"tls-client": {**own, "rootcas": authority}},
        {"control-service": {"service": _CONTROL, "filename": str(control_socket(node.at)), "tls": TLS}},
    ]


def control_socket(folder: Path) -> Path:
    """The Unix socket by which local processes talk to the daemon."""
    return folder / "control.sock"


def controller_yaml(node: Node, mesh: Mesh) -> str:
    """The controller's receptor.yml: it listens, signs work, and forwards to the store."""
    host, port = parse_address(mesh.address)
    forward = {"service": _STORE, "address": mesh.store, "tlsserver": TLS}
    return _yaml(
        [
            *_common(node, mesh.controller),
            {"tcp-listener": {"bindaddr": bind_host(host), "port": port, "tls": TLS}},
            {"work-signing": {"privatekey": str(node.at / "signing.key"), "tokenexpiration": "10m"}},
            *([{"tcp-client": forward}] if mesh.store else []),
        ]
    )


def node_yaml(node: Node, mesh: Mesh) -> str:
    """Another node's receptor.yml: it dials the controller, and does only work that it has signed."""
    reached = {
        "bindaddr": "127.0.0.1",
        "port": _store_port(mesh),
        "remotenode": mesh.controller,
        "remoteservice": _STORE,
        "tlsclient": TLS,
    }
    work = {"worktype": ASK, "command": node.program, "params": "site answer", "verifysignature": True}
    return _yaml(
        [
            *_common(node, mesh.controller),
            {"tcp-peer": {"address": mesh.address, "redial": True, "tls": TLS}},
            {"work-verification": {"publickey": str(node.at / "verification.key")}},
            {"work-command": work},
            *([{"tcp-server": reached}] if mesh.store else []),
        ]
    )


def _store_port(mesh: Mesh) -> int:
    """The store's port on a node's loopback: one above the store's, which may be in use there."""
    return parse_address(mesh.store)[1] + 1 if mesh.store else 0


def work_environment(node: Node, mesh: Mesh) -> str:
    """The environment of the node's work; its values stay on the node."""
    where = f"127.0.0.1:{_store_port(mesh)}" if mesh.store else "STORE_HOST:5432"
    return (
        "# Read by systemd alone. Put passwords here that the inventory names as {env: NAME}.\n"
        f"VNUMA_NODE={node.name}\n"
        f"#VNUMA_STORE=postgresql://vnuma:PASSWORD@{where}/vnuma\n"
        "VNUMA_HOME=/var/lib/vnuma\n"
    )


def systemd_unit(node: Node, who: str) -> str:
    """KillMode=process: running work outlives the daemon, which finds it again (systemd.kill(5)).

    StateDirectory makes /var/lib/vnuma, which the unit's user owns (systemd.exec(5)).
    """
    configuration = shlex.quote(str(node.at / "receptor.yml"))
    return f"""[Unit]
Description=vnuma node {node.name} (Receptor)
Wants=network-online.target
After=network-online.target

[Service]
{who}
UMask=0077
ExecStart=/usr/bin/receptor --config {configuration}
KillMode=process
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
"""


def _yaml(document: list[dict[str, Any]]) -> str:
    yaml, text = YAML(typ="safe", pure=True), StringIO()
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.dump(document, text)
    return text.getvalue()


def bind_host(host: str) -> str:
    """The address to listen on: all for a name, which may belong to a gateway."""
    return host if re.fullmatch(r"[\d.]+|\[.+\]", host) else "0.0.0.0"


def parse_address(text: str) -> tuple[str, int]:
    """Host and port; an IPv6 address keeps its brackets, as Receptor requires. Raises InputError."""
    found = _ADDRESS.fullmatch(text)
    if not found or int(found["port"]) > LAST_PORT or not _is_six(found["six"]):
        raise InputError(
            f"'{text}' is not a valid address.",
            fix=f"Give HOST:PORT, or [IPV6]:PORT; ports are 1 to {LAST_PORT}.",
        )
    return found["host"], int(found["port"])


def _is_six(text: str | None) -> bool:
    try:
        return text is None or bool(IPv6Address(text))
    except ValueError:
        return False
