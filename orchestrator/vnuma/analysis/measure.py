"""The analysed figure of every sample, with its unit and better direction.

All arithmetic is on logarithms, where the direction is a sign that only decides the wording.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vnuma.domain.workloads.metric import Better, Metric

Key = Literal["elapsed_ms", "cpu_ms", "client_ms", "value"]
"""The field of a sample with the figure."""


@dataclass(frozen=True)
class Measure:
    """A figure of every sample. `name` as in "elapsed time", to be followed by its `unit`."""

    key: Key
    name: str
    unit: str
    better: Better = "lower"


ELAPSED = Measure("elapsed_ms", "elapsed time", "ms")
COMPANIONS = (Measure("cpu_ms", "CPU time", "ms"), Measure("client_ms", "time by the client's clock", "ms"))
"""Shown in addition to the declared measure if samples have them; not used for the verdict."""


def measure_of(metric: Metric) -> Measure:
    """The measure that a workload declares."""
    key: Key = "elapsed_ms" if metric.source == "elapsed_ms" else "value"
    return Measure(key, metric.name, metric.unit, metric.better)


def worsening(log_ratio: float, better: Better) -> float:
    """How much worse, on the ln scale: above 0 is worse, whichever way is better."""
    return log_ratio if better == "lower" else -log_ratio
