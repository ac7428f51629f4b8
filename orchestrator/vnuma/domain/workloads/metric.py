"""A figure's meaning: name, unit, better direction, and where a sample has it."""

from __future__ import annotations

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
