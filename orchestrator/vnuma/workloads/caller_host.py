"""The callers' processes on the machine that calls, and a line of JSON for whatever they say.

It travels there as text, and so do the callers: that machine needs Python 3.9 or later and pyodbc, and
nothing of vnuma. Orders come in lines on standard input, the connection string among them, and answers go out
likewise; when the input ends, as it does when vnuma or the connection to it ends, every caller ends too.

    {"do": "begin", "caller": TEXT, "libraries": [...]}     {"do": "reach", "host": ..., "port": ...}
    {"do": "trust", "ca": PEM, "section": TEXT}
    {"do": "connect", "callers": 8, ...}                    {"do": "machine"}
    anything else: for each caller that was connected
"""

from __future__ import annotations

import json
import os
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

START = (
    "import json;exec(compile(json.loads(open(0,'rb',buffering=0,closefd=False).readline())['program'],"
    "'vnuma','exec'))"
)
"""The argument for Python's `-c`: it reads the program from the first line of its input."""

_END_S = 5.0
_REACH_S = 10.0
_ORDERS = 0
"""Standard input without a buffer, since buffered lines would not wake the selector."""


class _Caller:
    """A process of this Python, which gets its program as input."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", START], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        orders, answers = self.process.stdin, self.process.stdout
        assert orders is not None and answers is not None, "both are pipes"  # noqa: PT018 - no test
        self.orders = orders
        self.answers = answers

    def tell(self, order: dict[str, Any]) -> None:
        """Write one line; a caller that has ended is noticed by its output."""
        try:
            self.orders.write(json.dumps(order).encode() + b"\n")
            self.orders.flush()
        except BrokenPipeError:
            pass

    def wait(self) -> None:
        """Wait for its end after its input is closed; kill it if it does not end."""
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class _Host:
    """The callers in order of start; the first `active` of them are working."""

    def __init__(self) -> None:
        self.caller = ""
        self.callers: list[_Caller] = []
        self.active = 0
        self.unread: dict[int, bytes] = {}
        self.folder = tempfile.TemporaryDirectory(prefix="vnuma-")
        self.selector = selectors.DefaultSelector()
        self.selector.register(_ORDERS, selectors.EVENT_READ)

    def run(self) -> None:
        """Obey until the input ends, then end every caller."""
        while True:
            for key, _events in self.selector.select():
                data = os.read(key.fd, 65536)
                if key.data is not None:
                    self._said(key.fd, key.data, data)
                elif not data:
                    return self._end()
                else:
                    for order in self._lines(key.fd, data):
                        self._obey(order)

    def _obey(self, order: dict[str, Any]) -> None:
        if order["do"] == "begin":
            self.caller = order["caller"]
            _answer("hello", **_hello(order["libraries"]))
        elif order["do"] == "reach":
            _answer("reached", why=_why_not(order["host"], order["port"]))
        elif order["do"] == "trust":
            _trust(Path(self.folder.name), order["ca"], order["section"])
        elif order["do"] == "machine":
            _answer("machine", stat=_stat(), at=time.monotonic())
        else:
            if order["do"] == "connect":
                self._grow(order["callers"])
            for caller in self.callers[: self.active]:
                caller.tell(order)

    def _grow(self, callers: int) -> None:
        """Start as many processes as requested; surplus ones wait."""
        while len(self.callers) < callers:
            caller = _Caller()
            self.selector.register(caller.answers, selectors.EVENT_READ, len(self.callers))
            self.callers.append(caller)
            caller.tell({"program": self.caller})
        self.active = callers

    def _said(self, number: int, caller: int, data: bytes) -> None:
        for line in self._lines(number, data):
            _answer(line.pop("answer"), caller=caller, **line)
        if not data:
            self.selector.unregister(number)
            _answer("ended", caller=caller, status=self.callers[caller].process.wait())

    def _lines(self, number: int, data: bytes) -> list[dict[str, Any]]:
        *whole, self.unread[number] = (self.unread.get(number, b"") + data).split(b"\n")
        return [json.loads(line) for line in whole]

    def _end(self) -> None:
        """A caller ends when its input does, whatever it is doing."""
        for caller in self.callers:
            caller.orders.close()
        for caller in self.callers:
            caller.wait()
        self.folder.cleanup()


def _trust(folder: Path, ca: str, section: str) -> None:
    """Write the drivers' files for callers to come: freetds.conf, or OpenSSL's CAs."""
    authorities, servers = folder / "ca.pem", folder / "freetds.conf"
    authorities.write_text(ca, encoding="utf-8")
    if section:
        servers.write_text(section.replace("{ca}", str(authorities) if ca else "system"), encoding="utf-8")
        os.environ["FREETDSCONF"] = str(servers)
    elif ca:
        os.environ["SSL_CERT_FILE"] = str(authorities)


def _hello(libraries: list[str]) -> dict[str, object]:
    """What this machine has for callers; `why` pyodbc cannot be imported, if so."""
    drivers: list[str] = []
    why = None
    try:
        import pyodbc  # noqa: PLC0415 - that it is missing is an answer

        drivers = pyodbc.drivers()
    except ImportError as error:
        why = str(error)
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "cpus": os.cpu_count(),
        "drivers": drivers,
        "libraries": [path for path in libraries if Path(path).exists()],
        "freetds": next((_version(Path(path)) for path in libraries if Path(path).exists()), ""),
        "why": why,
    }


def _version(library: Path) -> str:
    """The version in FreeTDS's library, empty if none."""
    found = re.search(rb"freetds v([0-9]+(?:\.[0-9]+)+)", library.read_bytes())
    return found[1].decode() if found else ""


def _why_not(host: str, port: int) -> str | None:
    """Why a port cannot be reached from here; None if it can."""
    try:
        socket.create_connection((host, port), timeout=_REACH_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _stat() -> str | None:
    """The line `cpu` of /proc/stat; None if the system lacks it."""
    try:
        return Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
    except OSError:
        return None


def _answer(kind: str, **values: object) -> None:
    sys.stdout.write(json.dumps({"answer": kind, **values}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _Host().run()
