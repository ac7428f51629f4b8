"""What a study says of short calls over the network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vnuma.domain.workloads.metric import Metric
from vnuma.domain.workloads.settings import Problem, Seconds, Size, WorkloadContext, WorkloadSettings

Form = Literal["noop", "seek"]

CALL_RATE = Metric("calls", "calls/s", "higher")
"""Executions of the procedure that the server counted, over its own clock."""

CPU_PER_CALL = Metric("server CPU per call", "us", "lower", "figures")
"""CPU time of SQL Server's process, without interrupts that Windows counts for itself."""

CLIENT_RATE = Metric("client's own count", "calls/s", "higher", "figures")
"""Answers counted by the callers, over the client's clock."""

BATCH_REQUESTS = Metric("Batch Requests/sec", "1/s", "higher", "figures")
"""The server's counter, which includes other clients' requests."""

HEADROOM = Metric("client CPU headroom", "%", "higher", "figures")
"""The client's spare CPU: below `LEAST_HEADROOM` it may have been the limit."""

BUSIEST = Metric("busiest scheduler", "%", "lower", "figures")
"""CPU use of the busiest scheduler; known since SQL Server 2016 SP2."""

OTHER_SCHEDULERS = Metric("other schedulers, mean", "%", "lower", "figures")
"""Mean CPU use of all schedulers except the busiest; absent if there is only one."""

_SATURATED = 90.0
_IDLER = 0.5


def is_saturated(busiest: float, others: float) -> bool:
    """Whether one scheduler is nearly always busy and the others at most half as much, in percent."""
    return busiest >= _SATURATED and others <= busiest * _IDLER


LEAST_HEADROOM = 10.0
"""Percent of CPU. With less, the client itself may be measured, and the window does not count."""

MOST_OTHERS = 5.0
"""Percent of our calls. With more requests of other clients the window does not count."""

_SETUP_S = 2.0
_CONNECT_S = 0.1


class CallVolume(WorkloadSettings):
    """Remote procedure calls from 1 to N connections, each a process: calls per second (Chang 2005)."""

    size_word: ClassVar[str] = "connections"
    fixed_work: ClassVar[bool] = False  # a window has the same length whatever is called in it
    measured: ClassVar[Metric] = CALL_RATE
    figures: ClassVar[tuple[Metric, ...]] = (
        CPU_PER_CALL,
        CLIENT_RATE,
        BATCH_REQUESTS,
        HEADROOM,
        BUSIEST,
        OTHER_SCHEDULERS,
    )

    name: Literal["call_volume"] = Field(description="The workload.")
    sizes: tuple[Size, ...] = Field(
        default=(1, 2, 4, 8, 12, 16, 20, 40),
        min_length=1,
        description="Connections that call without pause, each from its own process.",
    )
    forms: tuple[Form, ...] = Field(
        default=("noop", "seek"),
        min_length=1,
        description=(
            "`noop` calls a procedure that draws a random number, calculates once and returns the "
            "session's number; `seek` calls one that reads a row by its key. The first form decides "
            "the verdict."
        ),
    )
    window_s: Seconds = Field(default=20, description="How long calls are counted, in seconds.")
    ramp_s: Annotated[float, Field(ge=0)] = Field(
        default=3, description="How long callers call before they are counted, in seconds."
    )
    seek_rows: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=10_000, description="Rows of the table that `seek` reads from."
    )

    client: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "The inventory's host that calls, reached by SSH: a machine that is not the guest's ESXi "
            "host, with Python 3.9, pyodbc and an ODBC driver. By default the machine that vnuma runs "
            "on."
        ),
    )

    @property
    def client_host(self) -> str | None:
        """The machine that calls."""
        return self.client

    def problems(self, around: WorkloadContext) -> Iterator[Problem]:
        """Sizes that would be measured twice, and a window that exceeds its own deadline."""
        if len(set(self.sizes)) < len(self.sizes):
            yield Problem(
                ("workload", "sizes"), "A number of connections is listed twice.", "List each only once."
            )
        if self.timeout_s <= self.window_s + self.ramp_s:
            yield Problem(
                ("workload", "timeout_s"),
                f"The deadline of {self.timeout_s:g} s is shorter than ramp and window "
                f"({self.ramp_s:g} + {self.window_s:g} s).",
                "Raise timeout_s, or shorten the window.",
            )

    def assumed_seconds(self, size: int, form: str) -> float:
        """Ramp and window, and connecting and disconnecting."""
        return self.ramp_s + self.window_s + _SETUP_S + size * _CONNECT_S
