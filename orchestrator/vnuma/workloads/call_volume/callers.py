"""All callers of one boot, started, counted and stopped together; and one window of their calls.

A window has the counts of callers and server at its edges, whether they agree, and its figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import fmean

from vnuma.errors import ConnectionDropped, MeasurementFailed, SqlUnreachable, VnumaError
from vnuma.logs.guest_tools import MachineTime, machine_busy, machine_time
from vnuma.sqlserver.client.connect import SqlServer, connection_string, driver_files, located
from vnuma.sqlserver.client.driver import Driver
from vnuma.sqlserver.client.failures import translate
from vnuma.sqlserver.client.odbc import pyodbc
from vnuma.sqlserver.instance.call_counters import ServerCounts
from vnuma.workloads.call_volume import settings
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


_OWN_REQUESTS = 20
"""An upper bound of our own requests while reading the server."""

_CLOCK_S = 0.1
_CLOCK_SHARE = 0.005


@dataclass(frozen=True)
class Edge:
    """One edge of the window: the callers' count, the server's, and the callers' again.

    `at` and `machine` are the client's clock, in seconds, and its machine's CPU time.
    """

    earlier: Count
    server: ServerCounts
    later: Count
    at: float
    machine: MachineTime | None


@dataclass(frozen=True)
class Window:
    """From one edge to the other, by that many connections."""

    connections: int
    before: Edge
    after: Edge

    @property
    def calls(self) -> int:
        """Executions of the procedure that the server counted."""
        return self.after.server.executions - self.before.server.executions

    @property
    def seconds(self) -> float:
        """The window's length by the server's clock."""
        return (self.after.server.at - self.before.server.at).total_seconds()

    @property
    def client_seconds(self) -> float:
        """The window's length by the client's clock."""
        return self.after.at - self.before.at

    @property
    def client_calls(self) -> float:
        """The callers' count of answers: the middle of the range that the counts at the edges allow."""
        return (sum(self._client_range())) / 2

    @property
    def rate(self) -> float:
        """Calls per second: the server's count over the server's clock."""
        return self.calls / self.seconds

    @property
    def others(self) -> int:
        """Requests of other clients, including our own readings of the server."""
        return self.after.server.requests - self.before.server.requests - self.calls

    @property
    def headroom(self) -> float:
        """Percent of CPU that the client had left."""
        return headroom(
            machine_busy(self.before.machine, self.after.machine),
            self.after.earlier.busy_since(self.before.later),
        )

    @property
    def schedulers(self) -> dict[int, float] | None:
        """Percent of each scheduler's time that it worked; None where SQL Server does not count it."""
        before, after = self.before.server.schedulers, self.after.server.schedulers
        if before is None or after is None or after.ms_ticks <= before.ms_ticks:
            return None
        passed = after.ms_ticks - before.ms_ticks
        return {
            one: 100 * (used - before.used_ms[one]) / passed
            for one, used in after.used_ms.items()
            if one in before.used_ms
        }

    def figures(self) -> dict[str, float]:
        """The declared figures, without unknown ones."""
        cpu_us = (self.after.server.cpu_ms - self.before.server.cpu_ms) * 1000
        found = {
            settings.CPU_PER_CALL.name: cpu_us / self.calls,
            settings.CLIENT_RATE.name: self.client_calls / self.client_seconds,
            settings.BATCH_REQUESTS.name: (self.others + self.calls) / self.seconds,
            settings.HEADROOM.name: self.headroom,
        }
        if self.schedulers:
            *others, busiest = sorted(self.schedulers.values())
            found[settings.BUSIEST.name] = busiest
            if others:
                found[settings.OTHER_SCHEDULERS.name] = fmean(others)
        return found

    def _client_range(self) -> tuple[int, int]:
        """The fewest and the most calls that callers can have counted between the server's two counts."""
        fewest = self.after.earlier.calls - self.before.later.calls
        most = self.after.later.calls - self.before.earlier.calls
        return fewest, most


def require_trustworthy(window: Window, *, judge_client: bool) -> None:
    """Raise MeasurementFailed for a window that does not measure the server.

    `judge_client`: whether the client can have been the limit; on the lab a call takes modelled time, however
    long the client needs.
    """
    _require_calls(window)
    _require_clock(window)
    if window.others > max(_OWN_REQUESTS, window.calls * settings.MOST_OTHERS / 100):
        raise MeasurementFailed(
            f"Other clients sent {window.others:,} requests in the window, against {window.calls:,} calls "
            f"({100 * window.others / window.calls:.0f}%, {settings.MOST_OTHERS:g}% at most).",
            fix="Measure while nobody else uses this SQL Server.",
        )
    if judge_client and window.headroom < settings.LEAST_HEADROOM:
        raise MeasurementFailed(
            f"The client had {window.headroom:.0f}% of its CPU left with {window.connections} connections "
            f"(it needs {settings.LEAST_HEADROOM:g}%): it may have been the limit, not SQL Server.",
            fix="Run vnuma on a machine with more or faster CPUs, or measure fewer connections.",
        )


def _require_calls(window: Window) -> None:
    """Both sides must count the same calls, except those in progress at the edges."""
    fewest, most = window._client_range()
    if window.calls <= 0 or window.seconds <= 0:
        raise MeasurementFailed(
            "SQL Server counted no call within the window.",
            fix="Raise workload.window_s, or check SQL Server's log.",
        )
    if not fewest - window.connections <= window.calls <= most + window.connections:
        raise MeasurementFailed(
            f"SQL Server counted {window.calls:,} calls, the callers between {fewest:,} and {most:,}.",
            fix="Check whether somebody else calls the procedure, or something empties the plan cache.",
        )


def _require_clock(window: Window) -> None:
    """The guest's wall clock must match its tick count: nobody set it meanwhile."""
    ticks = (window.after.server.ms_ticks - window.before.server.ms_ticks) / 1000
    if abs(ticks - window.seconds) > _CLOCK_S + _CLOCK_SHARE * window.seconds:
        raise MeasurementFailed(
            f"The guest's clock was set during the window: {window.seconds:.2f} s passed by it, "
            f"{ticks:.2f} s by its tick count.",
            fix="Let one source set the guest's time, and slowly (NTP, or VMware Tools without steps).",
        )
