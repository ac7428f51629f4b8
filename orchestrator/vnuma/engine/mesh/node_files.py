"""What `vnuma site init` writes: a node's Receptor configuration, keys, environment and systemd unit.

The folder `mesh` in the controller's home has what all nodes share: the authority and the signing keys. A
node's own folder, to be copied to it, has neither the authority's private key nor the signing key.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from pwd import getpwuid

from vnuma import assets
from vnuma.engine.access.secrets import write_private
from vnuma.engine.mesh.certificates import KeyPair, new_authority, node_certificate, signing_keys
from vnuma.engine.mesh.node_config import (
    LAST_PORT,
    Mesh,
    Node,
    control_socket,
    controller_yaml,
    node_yaml,
    parse_address,
    systemd_unit,
    work_environment,
)
from vnuma.errors import InputError, UsageError, reading, write_fix

_MESH = "mesh.json"
_SHARED = {"ca.key", "ca.crt", "signing.key", "verification.key", _MESH}
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,61}[A-Za-z0-9])?")


def init_controller(base: Path, node: Node, address: str, store: str | None) -> Path:
    """Write the authority, the signing keys and the controller's folder, and return it. Never overwrites.

    `address` is the HOST:PORT at which nodes dial the controller, `store` PostgreSQL's address from there.
    Raises UsageError for a second controller, InputError for an invalid name, folder or address.
    """
    _checked(node)
    host, port = parse_address(address)
    if store and parse_address(store)[1] == LAST_PORT:
        raise InputError(
            f"'{store}' leaves no port for the nodes, which find the store one above it.",
            fix=f"Give PostgreSQL a port below {LAST_PORT}.",
        )
    if (base / _MESH).exists():
        raise UsageError(
            f"{base} already has a controller, {read_mesh(base).controller}: --listen makes a new one.",
            fix=f"vnuma site init {node.name}",
        )
    now = datetime.now(UTC)
    authority, signing = new_authority(now), signing_keys()
    mesh = Mesh(node.name, f"{host}:{port}", store)
    kept = {
        "ca.key": authority.private,
        "ca.crt": authority.public,
        "signing.key": signing.private,
        "verification.key": signing.public,
        _MESH: json.dumps(asdict(mesh)),
    }
    certificate = node_certificate(authority, node.name, [host.strip("[]")], now)
    own = {
        "ca.crt": authority.public,
        "signing.key": signing.private,
        "vnuma-mesh.service": systemd_unit(node, f"User={getpwuid(os.geteuid()).pw_name}"),
    }
    folder = _write_node(base, node, mesh, controller_yaml(node, mesh), certificate, own)
    try:
        _write(base, kept)
    except InputError:
        shutil.rmtree(folder)  # made just now: the next attempt starts anew
        raise
    return folder


def init_node(base: Path, node: Node) -> Path:
    """Write and return the folder of a node that dials the controller. Never overwrites.

    Raises InputError without a mesh here, or for a name that is invalid or taken.
    """
    _checked(node)
    mesh = read_mesh(base)
    if node.name == mesh.controller:
        raise InputError(f"{node.name} is the controller of this mesh.", fix="Choose another name.")
    authority = KeyPair(_read(base / "ca.key"), _read(base / "ca.crt"))
    certificate = node_certificate(authority, node.name, [], datetime.now(UTC))
    environment = f"User=vnuma\nStateDirectory=vnuma\nEnvironmentFile={node.at / 'node.env'}"
    shared = {
        "ca.crt": authority.public,
        "verification.key": _read(base / "verification.key"),
        "node.env": work_environment(node, mesh),
        "vnuma-mesh.service": systemd_unit(node, environment),
    }
    return _write_node(base, node, mesh, node_yaml(node, mesh), certificate, shared)


def read_mesh(base: Path) -> Mesh:
    """What all nodes share. Raises InputError without a mesh here."""
    path = base / _MESH
    if not path.exists():
        raise InputError(
            f"There is no mesh in {base}.",
            fix="Begin with the controller: vnuma site init controller --listen HOST:PORT",
        )
    return Mesh(**json.loads(_read(path)))


def _checked(node: Node) -> None:
    if not _NAME.fullmatch(node.name):
        raise InputError(
            f"'{node.name}' is not a valid node name.",
            fix="Use up to 63 letters, digits, dots and hyphens; the first and last are letters or digits.",
        )
    if node.name.casefold() in _SHARED:
        raise InputError(f"'{node.name}' is a file that all nodes share.", fix="Choose another name.")
    if not node.at.is_absolute():
        raise InputError(f"The folder {node.at} is not an absolute path.", fix="Give --at /FOLDER.")


def _write_node(
    base: Path,
    node: Node,
    mesh: Mesh,
    configuration: str,
    own: KeyPair,
    shared: dict[str, str],
) -> Path:
    folder = base / node.name
    if folder.exists():
        raise InputError(
            f"{folder} exists already; nothing was overwritten.",
            fix="Choose another name, or move that folder away.",
        )
    files = {
        "node.key": own.private,
        "node.crt": own.public,
        "receptor.yml": configuration,
        **shared,
    }
    return _write(folder, files)


def _write(folder: Path, files: dict[str, str]) -> Path:
    """Write all of these files or none, so that a full disk leaves nothing half-written."""
    made: list[Path] = []
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (folder / name for name in files):
            if not path.exists():
                made.append(path)
            write_private(path, files[path.name])
    except OSError as error:
        with suppress(OSError):
            for path in made:
                path.unlink(missing_ok=True)
            folder.rmdir()  # fails if it contains something else
        raise InputError(
            f"{folder} cannot be written ({error.strerror}).", fix=write_fix(error, folder)
        ) from error
    return folder


def _read(path: Path) -> str:
    with reading(path, fix="Nodes are made where the mesh was begun."):
        return path.read_text(encoding="utf-8")


def controller_socket() -> Path:
    """The socket of the controller's daemon. Raises InputError without a mesh here.

    VNUMA_RECEPTOR_SOCKET names it if --at has put the controller's files elsewhere.
    """
    if given := os.environ.get("VNUMA_RECEPTOR_SOCKET"):
        return Path(given)
    base = assets.home() / "mesh"
    return control_socket(base / read_mesh(base).controller)
