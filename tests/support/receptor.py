"""Receptor daemons on loopback, of the program that Debian packages as `receptor`."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.installation import ROOT

_READY_S = 30
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
    """A daemon with the configuration in `folder`; it runs when made, and until `stop`.

    `prefix` is a command that starts it in a place of its own.
    """

    def __init__(
        self,
        program: Path,
        folder: Path,
        env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        self.log = folder / "daemon.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*prefix, program, "--config", folder / "receptor.yml"],
                env={**os.environ, **(env or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_for(self, words: str) -> None:
        """Return once its log has these words; fail with the log otherwise."""
        for _ in range(_READY_S * 20):
            if words in self.log.read_text(errors="replace"):
                return
            try:
                self._process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
            break
        raise AssertionError(f"no '{words}' in:\n{self.log.read_text(errors='replace')}")

    def kill(self) -> None:
        """End it as a crash does: it tells nobody."""
        self._process.kill()
        self._process.wait(timeout=30)

    def stop(self) -> None:
        """End it and wait for that."""
        self._process.terminate()
        self._process.wait(timeout=30)
