"""The result of one iteration: one record from workload to store and archive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Figures:
    """An iteration's results besides its time; None means unknown.

    `cpu_ms` and the times of parse and compile are SQL Server's own, `client_ms` is this machine's. `value`
    is the workload's metric in its unit, for metrics whose source is `value`; `figures` are the other
    declared ones, by name. `waits` has wait statistics by difference, `execution` where and how it ran and
    which clock timed it.
    """

    cpu_ms: float | None = None
    value: float | None = None
    figures: Mapping[str, float] | None = None
    parse_cpu_ms: float | None = None
    parse_elapsed_ms: float | None = None
    client_ms: float | None = None
    rows: int | None = None
    waits: Mapping[str, Mapping[str, int]] | None = None
    execution: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Reading(Figures):
    """A measured iteration. `elapsed_ms` is the server's own time of one statement, or the window of a
    throughput.
    """

    elapsed_ms: float
