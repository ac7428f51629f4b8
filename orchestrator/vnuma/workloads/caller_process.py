"""A caller's process, as its parent sees it: started, given orders, listened to, ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

from vnuma.errors import MeasurementFailed

Answer = Mapping[str, object]

_COMMAND = (sys.executable, "-m", "vnuma.workloads.caller")
_END_S = 5.0


class CallerProcess:
    """One process of `vnuma.workloads.caller`. A new session keeps a terminal's signals from it."""

    def __init__(self, errors: IO[bytes]) -> None:
        self._process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._answers = self._process.stdin, self._process.stdout
        self._unread = b""

    def fileno(self) -> int:
        """Where answers come from, for a selector."""
        return self._answers.fileno()

    def order(self, do: str, **values: object) -> None:
        """Send one line. Raises MeasurementFailed when the process has ended."""
        try:
            self._orders.write(json.dumps({"do": do, **values}).encode() + b"\n")
            self._orders.flush()
        except OSError as error:
            raise self._ended() from error

    def read(self) -> list[Answer]:
        """The answers that have come; call it when there is something. Raises MeasurementFailed."""
        data = os.read(self.fileno(), 65536)
        if not data:
            raise self._ended()
        *lines, self._unread = (self._unread + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def end(self) -> None:
        """Close its input, which ends it; kill it if that does not."""
        with suppress(OSError):  # it may have ended by itself
            self._orders.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()

    def _ended(self) -> MeasurementFailed:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        return MeasurementFailed(
            f"A caller's process ended by itself (exit code {self._process.returncode}).",
            fix="Was it killed, or is this machine short of memory or processes? "
            "Measure fewer connections, or from a larger machine.",
        )
