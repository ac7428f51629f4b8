"""How throughput grows with load: where it peaks, and whether more load, or more CPUs, give less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vnuma.domain.sizes import sized

LOSS = 0.05
"""A rate this much below the best one before it, or more, is negative scaling."""


@dataclass(frozen=True)
class Scaling:
    """A curve: loads in ascending order with their rates, and what is found in it.

    `negative` are the loads whose rate is below the best one at a smaller load by LOSS or more.
    """

    points: tuple[tuple[int, float], ...]
    peak: int
    negative: tuple[int, ...]

    @property
    def worst_loss(self) -> float:
        """The largest loss against the best rate at a smaller load, as a share of that; 0 for none."""
        best, worst = 0.0, 0.0
        for _load, rate in self.points:
            best = max(best, rate)
            worst = max(worst, 1 - rate / best)
        return worst

    def words(self, unit: str, what: str) -> str:
        """`peaks at 12 connections (31,004 calls/s); negative scaling: 40 connections give 12% less`."""
        rates = dict(self.points)
        said = f"peaks at {sized(self.peak, what)} ({rates[self.peak]:,.0f} {unit})"
        if not self.negative:
            return f"{said}; no negative scaling"
        loads = ", ".join(f"{load:,}" for load in self.negative)
        return f"{said}; negative scaling at {loads} {what}: up to {self.worst_loss:.0%} less"


def scaling(rates: Mapping[int, float]) -> Scaling | None:
    """The curve of rates by load; None for fewer than two loads. Rates are positive."""
    if len(rates) < 2:
        return None
    points = tuple(sorted(rates.items()))
    best, negative = 0.0, []
    for load, rate in points:
        if rate <= best * (1 - LOSS):
            negative.append(load)
        best = max(best, rate)
    peak = next(load for load, rate in points if rate == best)
    return Scaling(points, peak, tuple(negative))
