"""Receptor daemons on loopback, of the program that Debian packages as `receptor`."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.installation import ROOT

_PRIVILEGED, _EPHEMERAL = 1024, 32768
"""Linux gives ports from the second on to outgoing connections (ip(7), ip_local_port_range)."""


def find_receptor() -> Path:
    """The daemon's program: where .ci/run unpacked it, or on the PATH. Skips the test without it."""
    unpacked = ROOT / ".cache" / "receptor" / "usr" / "bin" / "receptor"
    found = unpacked if unpacked.exists() else shutil.which("receptor")
    if found is None:
        pytest.skip("no Receptor daemon: Debian 13 and newer: apt install receptor; else see .ci/run")
    return Path(found)


def free_port() -> int:
    """A port of loopback that nobody listens on now, and that no outgoing connection is given meanwhile."""
    for _ in range(100):
        port = secrets.randbelow(_EPHEMERAL - _PRIVILEGED) + _PRIVILEGED
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port on loopback")


class Daemon:
    """A daemon with the configuration in `folder`; it runs when made, and until `stop`."""

    def __init__(
        self,
        program: Path,
        folder: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.log = folder / "daemon.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [program, "--config", folder / "receptor.yml"],
                env={**os.environ, **(env or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def stop(self) -> None:
        """End it and wait for that."""
        self._process.terminate()
        self._process.wait(timeout=30)


def ask(socket_path: Path, command: str | dict[str, str], stdin: bytes | None = None) -> str:
    """A daemon's answer to a command of its control service, as receptorctl(1) sends it."""
    text = command if isinstance(command, str) else json.dumps(command)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(60)
        connection.connect(str(socket_path))
        with connection.makefile("rwb") as stream:
            stream.readline()
            stream.write(text.encode() + b"\n")
            stream.flush()
            answer = stream.readline()
            if stdin is not None:
                stream.write(stdin)
                stream.flush()
                connection.shutdown(socket.SHUT_WR)
                stream.readline()
            return answer.decode().strip()
