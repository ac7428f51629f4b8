"""One window of calls: the counts of callers and server at its edges, whether they agree, and its figures."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from vnuma.errors import MeasurementFailed
from vnuma.logs.guest_tools import MachineTime, machine_busy
from vnuma.sqlserver.instance.call_counters import ServerCounts
from vnuma.workloads.call_volume import settings
from vnuma.workloads.call_volume.callers import Count, headroom

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
