"""A network namespace that has loopback alone: what runs in it reaches no port of this machine's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.installation import ROOT

_UP = "ip link set lo up && echo up && exec cat"


class Namespace:
    """A namespace that lives until `stop`. Skips the test where none can be made."""

    def __init__(self) -> None:
        lacking = [name for name in ("unshare", "nsenter", "ip") if shutil.which(name) is None]
        if lacking:
            pytest.skip(f"no network namespace: {', '.join(lacking)} missing")
        self._holder = subprocess.Popen(
            ["unshare", "-rn", "sh", "-c", _UP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"up\n":
            self.stop()
            pytest.skip("no network namespace: this machine does not allow one to be made")
        user = ["nsenter", "-t", str(self._holder.pid), "-U", "-n", "--preserve-credentials"]
        self.prefix: Sequence[str] = user

    def stop(self) -> None:
        """End it, with what holds it."""
        self._holder.communicate()

    def reaches(self, port: int) -> bool:
        """Whether a port of this machine's loopback can be connected to from inside."""
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        asked = subprocess.run(
            [*self.prefix, sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False
        )
        return asked.returncode == 0

    @contextmanager
    def let_in(self, port: int, folder: Path) -> Iterator[None]:
        """Carry what connects to this port of the machine to the same port inside."""
        path = str(folder / "let-in.sock")
        with relayed(path, str(port), self.prefix), relayed(str(port), path):
            yield


@contextmanager
def relayed(listen: str, target: str, prefix: Sequence[str] = ()) -> Iterator[None]:
    """Carry connections between two places, each a path or a port; `prefix` starts the relay elsewhere."""
    process = subprocess.Popen(
        [*prefix, sys.executable, "-m", "tests.support.relay", listen, target],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.kill()
        process.communicate()
