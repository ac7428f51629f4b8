"""How throughput grows with load: its peak, and whether more load or more CPUs reduce it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LOSS = 0.05
"""A rate this much below the best earlier one, or more, is reported as a loss."""


@dataclass(frozen=True)
class Scaling:
    """A measured curve: ascending loads with their rates, without any test.

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
        """The largest loss at these loads relative to the best rate at a smaller one, as a share;
        0 for none.
        """
        best, worst = 0.0, 0.0
        for load, rate in self.points:
            best = max(best, rate)
            worst = max(worst, 1 - rate / best) if load in loads else worst
        return worst


def scaling(rates: Mapping[int, float]) -> Scaling | None:
    """The curve of positive rates by load; None for fewer than two loads."""
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
