"""All callers of one boot: started, counted and stopped together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from vnuma.errors import ConnectionDropped, MeasurementFailed, SqlUnreachable, VnumaError
from vnuma.logs.guest_tools import MachineTime, machine_time
from vnuma.sqlserver.client.connect import SqlServer, connection_string, driver_files, located
from vnuma.sqlserver.client.driver import Driver
from vnuma.sqlserver.client.failures import translate
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.workloads.client import HERE, Answer, Client, ClientHost, client_host, driver_on

LOGIN_S = 30.0
ANSWER_S = 30.0
"""Time limit for an order that takes no time, which reveals a hanging server."""

_SLICE_S = 0.5


@dataclass(frozen=True)
class Count:
    """The callers' counts at about one time: total calls, and CPU of each.

    `cpu` has, for every caller, its CPU seconds and its clock's time.
    """

    calls: int
    cpu: tuple[tuple[float, float], ...]

    def busy_since(self, before: Count) -> tuple[float, ...]:
        """The share of a CPU that each caller used in between, 0 to 1."""
        pairs = zip(before.cpu, self.cpu, strict=True)
        return tuple((used - used0) / (at - at0) if at > at0 else 0.0 for (used0, at0), (used, at) in pairs)


class Callers:
    """The callers on one client; more are started when more connections are needed."""

    def __init__(self, server: SqlServer, database: str, host: ClientHost, cpus: int) -> None:
        self._server, self._database, self._host = server, database, host
        self.cpus = cpus
        self._active = 0

    @property
    def driver(self) -> Driver:
        """What the callers connect with."""
        return self._server.driver

    @property
    def where(self) -> str:
        """The client's name."""
        return self._host.client.name

    def connect(self, connections: int, call: str, *, keys: int, own_session: bool) -> list[int]:
        """Connect that many; each calls once and then waits. Returns their sessions."""
        self._active = connections
        server = located(self._server, LOGIN_S)
        ca, section = driver_files(server)
        self._host.order("trust", ca=ca, section=section)
        self._host.order(
            "connect",
            callers=connections,
            string=connection_string(server, self._database),
            call=call,
            keys=keys,
            own_session=own_session,
            login_timeout_s=LOGIN_S,
        )
        return [int(str(answer["session"])) for answer in self._answers("ready", LOGIN_S + ANSWER_S)]

    def go(self) -> None:
        """Start all of them."""
        self._host.order("go")

    def watch(self, seconds: float, between: Callable[[], None]) -> None:
        """Wait; a failing caller ends it at once. `between` is called every half second."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for answer in self._host.come(min(left, _SLICE_S)):
                raise self._unexpected(answer)
            between()

    def count(self) -> Count:
        """The present counts of every caller."""
        self._host.order("count")
        return _count(self._answers("count", ANSWER_S))

    def machine(self) -> tuple[float, MachineTime | None]:
        """The client's clock, in seconds, and its CPU time."""
        self._host.order("machine")
        answer = self._host.answer("machine", ANSWER_S)
        stat = answer["stat"]
        return float(str(answer["at"])), machine_time(str(stat) if stat else None)

    def stop(self) -> Count:
        """Let all finish their call and disconnect; returns the final count."""
        self._host.order("stop")
        found = _count(self._answers("stopped", ANSWER_S))
        self._active = 0
        return found

    def _answers(self, kind: str, seconds: float) -> Sequence[Answer]:
        """One answer of that kind from each active caller, in their order."""
        found: dict[int, Answer] = {}
        until = time.monotonic() + seconds
        while len(found) < self._active:
            left = until - time.monotonic()
            if left <= 0:
                raise MeasurementFailed(
                    f"{self._active - len(found)} of {self._active} callers did not answer within "
                    f"{seconds:g} s.",
                    fix="Check whether the server or the client is overloaded, or the guest frozen.",
                )
            for answer in self._host.come(left):
                if answer["answer"] != kind:
                    raise self._unexpected(answer)
                found[int(str(answer["caller"]))] = answer
        return [found[caller] for caller in range(self._active)]

    def _unexpected(self, answer: Answer) -> VnumaError:
        """Why a caller failed, as an error."""
        if answer["answer"] == "ended":
            return MeasurementFailed(
                f"A caller's process ended unexpectedly (exit code {answer['status']}).",
                fix=f"Check whether it was killed, or {self._host.client.name} is short of memory or "
                "processes. Measure fewer connections, or use a larger machine.",
            )
        text = str(answer.get("text", f"it answered {answer['answer']}"))
        who = f"Caller {1 + int(str(answer['caller']))} of {self._active}"
        error = translate(pyodbc.Error(str(answer.get("sqlstate", "")), text), self._server.where)
        if answer.get("lost") or isinstance(error, SqlUnreachable):
            return ConnectionDropped(
                f"{who} lost its connection: {error.what}",
                fix="Check whether the guest or SQL Server restarted: see SQL Server's error log.",
            )
        what = error.what if answer.get("sqlstate") else text
        return MeasurementFailed(f"{who} failed: {what}", fix=error.fix if answer.get("sqlstate") else None)


@contextmanager
def callers(server: SqlServer, database: str, client: Client = HERE) -> Iterator[Callers]:
    """Callers for the duration of a `with`, after which no process remains.

    Raises MachineUnreachable, or DriverMissing when the client has no driver.
    """
    with client_host(client) as (host, hello):
        there = replace(server, driver=driver_on(client, hello, server.driver))
        yield Callers(there, database, host, hello.cpus)


def _count(answers: Sequence[Answer]) -> Count:
    return Count(
        sum(int(str(answer["calls"])) for answer in answers),
        tuple((float(str(answer["cpu_s"])), float(str(answer["at"]))) for answer in answers),
    )


def headroom(machine: float | None, each: Sequence[float]) -> float:
    """Percent of CPU that the client had left: the machine's, or its busiest caller's if lower.

    A caller normally waits for answers. One that is always busy runs at the client's speed, not the server's.
    """
    used = max((machine or 0.0, *each))
    return 100 * (1 - min(used, 1.0))
