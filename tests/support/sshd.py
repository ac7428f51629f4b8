"""A private SSH server on a free port of the loopback interface, gone with the test."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.ports import free_port

READY_S = 120.0
_TICK_S = 0.02
_SEPARATION = Path("/run/sshd")
"""Where a server that root starts separates privileges; a distribution's own service makes it."""


@dataclass(frozen=True)
class SshServer:
    """Where it answers; `variables` are an inventory's for a host that is reached there."""

    port: int
    variables: dict[str, object]
    log: Path


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    """An SSH server that knows one key. Skips the test where OpenSSH is missing, but not in CI."""
    program = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    keygen = shutil.which("ssh-keygen")
    if not (program and keygen and shutil.which("ssh")):
        pytest.skip("no OpenSSH server and client: Debian: apt install openssh-server openssh-client")
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    for name in ("host", "key"):
        command = [keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True, capture_output=True)
    port, log = free_port(), folder / "sshd.log"
    configuration = folder / "sshd_config"
    lines = [
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {folder / 'host'}",
        f"AuthorizedKeysFile {folder / 'key.pub'}",
        f"PidFile {folder / 'sshd.pid'}",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
    ]
    configuration.write_text("\n".join(lines) + "\n", encoding="ascii")
    _separate()
    with log.open("wb") as errors:
        server = subprocess.Popen([program, "-D", "-e", "-f", str(configuration)], stderr=errors)
        try:
            _wait(server, port, log)
            yield SshServer(port, _variables(folder, port), log)
        finally:
            server.terminate()
            server.wait(timeout=60)


def _separate() -> None:
    """Root's server needs an empty folder, anybody else's does not. It stays: another test may use it now."""
    if not os.geteuid():
        _SEPARATION.mkdir(mode=0o755, exist_ok=True)


def _variables(folder: Path, port: int) -> dict[str, object]:
    known = folder / "known_hosts"
    host_key = (folder / "host.pub").read_text(encoding="ascii").strip()
    known.write_text(f"[127.0.0.1]:{port} {host_key}\n", encoding="ascii")
    return {
        "ansible_host": "127.0.0.1",
        "ansible_port": port,
        "ansible_user": getpass.getuser(),
        "ansible_private_key_file": str(folder / "key"),
        "ansible_ssh_common_args": f"-F none -o UserKnownHostsFile={known} -o IdentitiesOnly=yes",
        "ansible_python_interpreter": sys.executable,
    }


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if _ended(server):
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            pytest.skip(f"sshd does not run unprivileged here: {said[-1] if said else 'no message'}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
        except OSError:
            continue
        return
    raise AssertionError(f"no sshd within {READY_S} s")


def _ended(server: subprocess.Popen[bytes]) -> bool:
    """After a moment: it needs the processor that a look costs."""
    try:
        server.wait(timeout=_TICK_S)
    except subprocess.TimeoutExpired:
        return False
    return True
