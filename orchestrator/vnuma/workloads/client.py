"""The client machine: this one, or another one that a command reaches."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from vnuma.errors import DriverMissing, MachineUnreachable, MeasurementFailed
from vnuma.sqlserver.client import odbc
from vnuma.sqlserver.client.driver import LIBRARIES, Driver, elsewhere
from vnuma.sqlserver.client.odbc import UNIXODBC
from vnuma.workloads import caller_host

Answer = Mapping[str, object]

BEGIN_S = 60.0
"""Time limit for an SSH connection and the start of Python on a busy machine."""

_END_S = 10.0
_PROGRAMS = Path(caller_host.__file__).parent


@dataclass(frozen=True)
class Client:
    """A client machine, and the command that starts its Python with `caller_host.START`.

    The command has no secrets: the connection string is sent as input. `here`: it is vnuma's own machine,
    under whatever name.
    """

    name: str
    command: tuple[str, ...]
    here: bool = False


HERE = Client("this machine", (sys.executable, "-c", caller_host.START), here=True)
_NAMES_PYTHON = "ansible_python_interpreter names its Python."


@dataclass(frozen=True)
class Hello:
    """A client's Python, CPUs and ODBC drivers by name and path, or why pyodbc does not load.

    `freetds` is the version of its FreeTDS, empty if unknown.
    """

    python: str
    cpus: int
    drivers: tuple[str, ...]
    libraries: tuple[str, ...]
    why: str | None
    freetds: str = ""


class ClientHost:
    """A running `caller_host` on a client, in a new session to shield it from a terminal's signals."""

    def __init__(self, client: Client, errors: IO[bytes]) -> None:
        self.client, self._errors = client, errors
        try:
            self._process = subprocess.Popen(
                client.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                env=odbc.environment() if client.here else None,
            )
        except OSError as error:
            raise MachineUnreachable(
                f"{client.name} cannot be reached: {client.command[0]} cannot be started here "
                f"({error.strerror}).",
                fix=_NAMES_PYTHON
                if client.here
                else "Install an SSH client (Debian: apt install openssh-client), or name one with "
                "ansible_ssh_executable.",
            ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._answers = self._process.stdin, self._process.stdout
        self._unread = b""

    def begin(self) -> Hello:
        """Send the programs and return what the client has. Raises MachineUnreachable without an answer."""
        host, caller = (
            (_PROGRAMS / name).read_text(encoding="utf-8") for name in ("caller_host.py", "caller.py")
        )
        try:
            self._line({"program": host})
            self.order("begin", caller=caller, libraries=list(LIBRARIES))
            answer = self.answer("hello", BEGIN_S)
        except MeasurementFailed as error:
            raise self._unreachable() from error
        return Hello(
            str(answer["python"]),
            int(str(answer["cpus"])),
            tuple(_texts(answer["drivers"])),
            tuple(_texts(answer["libraries"])),
            str(answer["why"]) if answer["why"] else None,
            str(answer["freetds"]),
        )

    def why_not(self, host: str, port: int) -> str | None:
        """Why the client cannot reach a port; None if it can."""
        self.order("reach", host=host, port=port)
        why = self.answer("reached", BEGIN_S)["why"]
        return str(why) if why else None

    def order(self, do: str, **values: object) -> None:
        """Send one order. Raises MeasurementFailed when the client has ended."""
        self._line({"do": do, **values})

    def answer(self, kind: str, seconds: float) -> Answer:
        """The next answer, which must be of that kind. Raises MeasurementFailed."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for answer in self.come(left):
                if answer["answer"] == kind:
                    return answer
        raise MeasurementFailed(f"{self.client.name} did not answer within {seconds:g} s.")

    def come(self, seconds: float) -> Iterator[Answer]:
        """Answers that arrive within that time; returns early if there are some. Raises MeasurementFailed."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            if not selector.select(seconds):
                return
        data = os.read(self._answers.fileno(), 65536)
        if not data:
            raise self._ended()
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            yield json.loads(line)

    def end(self) -> None:
        """Close its input, which ends it and its callers; kill it if that does not."""
        with suppress(OSError):  # it may have ended by itself
            self._orders.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()

    def _line(self, document: Mapping[str, object]) -> None:
        try:
            self._orders.write(json.dumps(document).encode() + b"\n")
            self._orders.flush()
        except OSError as error:
            raise self._ended() from error

    def _ended(self) -> MeasurementFailed:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        return MeasurementFailed(
            f"The callers on {self.client.name} ended unexpectedly (exit code {self._process.returncode}).",
            fix="Check whether the connection to it broke, or it is short of memory or processes.",
        )

    def _unreachable(self) -> MachineUnreachable:
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        said = lines[-1].strip().rstrip(".") if lines else "it did not answer"
        by_ssh = (
            "Try ssh to it as the inventory says (ansible_host, ansible_port, ansible_user, a key without a "
            "passphrase or in an agent); "
        )
        return MachineUnreachable(
            f"Python cannot be started on {self.client.name}: {said}.",
            fix=_NAMES_PYTHON if self.client.here else by_ssh + _NAMES_PYTHON,
        )


@contextmanager
def client_host(client: Client) -> Iterator[tuple[ClientHost, Hello]]:
    """A client for the duration of a `with`, after which no process remains. Raises MachineUnreachable."""
    with tempfile.TemporaryFile() as errors:
        host = ClientHost(client, errors)
        try:
            yield host, host.begin()
        finally:
            host.end()


def driver_on(client: Client, hello: Hello, own: Driver) -> Driver:
    """The driver that callers use on that machine. Raises DriverMissing."""
    if hello.why:
        install = (
            f"Install unixODBC there. {UNIXODBC}" if "libodbc" in hello.why else "pip install pyodbc there."
        )
        raise DriverMissing(
            f"{client.name} cannot import pyodbc in its Python {hello.python}: {hello.why}.",
            fix=f"{install} ansible_python_interpreter names another Python.",
        )
    if client.here and own.name in (own.path, *hello.drivers):
        return own
    found = elsewhere(own, hello.drivers, hello.libraries)
    if found is None:
        raise DriverMissing(
            f"{client.name} has no ODBC driver for SQL Server (registered there: "
            f"{', '.join(hello.drivers) or 'none'}).",
            fix="Install one there. Debian: apt install tdsodbc.",
        )
    return replace(found, version=hello.freetds) if found.kind == "freetds" else found


def _texts(items: object) -> list[str]:
    return [str(item) for item in items] if isinstance(items, list) else []
