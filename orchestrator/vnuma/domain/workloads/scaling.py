"""How throughput grows with load: where it peaks, and whether more load, or more CPUs, give less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LOSS = 0.05
"""A rate this much below the best one before it, or more, is a loss worth telling."""


@dataclass(frozen=True)
class Scaling:
    """A curve as it was measured: loads in ascending order with their rates. It tests nothing.

    `lower` are the loads whose rate is below the best one at a smaller load by LOSS or more.
    """

    points: tuple[tuple[int, float], ...]
    peak: int
    lower: tuple[int, ...]

    @property
    def peak_rate(self) -> float:
        """The highest rate."""
        return dict(self.points)[self.peak]

    def worst_loss(self, loads: tuple[int, ...]) -> float:
        """The largest loss at these loads against the best rate at a smaller one, as a share; 0 for none."""
        best, worst = 0.0, 0.0
        for load, rate in self.points:
            best = max(best, rate)
            worst = max(worst, 1 - rate / best) if load in loads else worst
        return worst


def scaling(rates: Mapping[int, float]) -> Scaling | None:
    """The curve of rates by load; None for fewer than two loads. Rates are positive."""
    if len(rates) < 2:
        return None
    points = tuple(sorted(rates.items()))
    best, lower = 0.0, []
    for load, rate in points:
        if rate <= best * (1 - LOSS):
            lower.append(load)
        best = max(best, rate)
    peak = next(load for load, rate in points if rate == best)
    return Scaling(points, peak, tuple(lower))
