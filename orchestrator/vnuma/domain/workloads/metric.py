"""What a figure means: its metric, its size as text, and its replicate, the unit that n counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class Metric:
    """One declared figure.

    `source` says where a sample has it: `elapsed_ms` for SQL Server's own elapsed time, `value` for a
    workload's own result in `unit`, `figures` for its other results, by `name`.
    """

    name: str
    unit: str
    better: Better
    source: Literal["elapsed_ms", "value", "figures"] = "value"

    @property
    def direction(self) -> str:
        """For axes and headings: `lower is better`."""
        return f"{self.better} is better"


ELAPSED = Metric("elapsed time", "ms", "lower", "elapsed_ms")
"""SQL Server's elapsed time of one execution."""


_PLURAL = re.compile(r"^(\w{2,})s\b")


def sized(size: int, size_word: str) -> str:
    """`500 rows a side`, `8 streams`, `1 connection`, `1,472 MB`."""
    word = _PLURAL.sub(r"\1", size_word) if size == 1 else size_word
    return f"{size:,} {word}"


def in_table(size: int) -> str:
    """In a table's first column: `500`, `1472`, `2,000,000`."""
    return f"{size:,}" if size > 9999 else str(size)


Replicate = Literal["boot", "pass"]
"""A VM's power-cycle; or a pass over a machine that is not booted."""


def medians(replicate: Replicate) -> str:
    """An arm's figure: `median of boot medians`."""
    return f"median of {replicate} medians"


def none_valid(replicate: Replicate) -> str:
    """Why an arm has no figure: `no valid boot`."""
    return f"no valid {replicate}"


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
