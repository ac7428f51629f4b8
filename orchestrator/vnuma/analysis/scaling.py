"""How throughput grows with load: its peak, and whether more load or more CPUs reduce it.

A loss is tested within the boots, or blocks, with both loads. That against the best of all smaller loads is a
maximum over pairs: with 3% scatter of iterations, one flat curve in seven (eight loads, medians of six boots)
falls by 5% somewhere. Paired t, one-sided, Bonferroni over all pairs of the curve: a flat curve shows a loss
in at most 5% of studies, whichever loads look worst.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from vnuma.analysis.compare import own_se
from vnuma.analysis.distributions import t_quantile
from vnuma.analysis.instrument_checks import MIN_BOOTS_FOR_VERDICT

LOSS = 0.05
"""A rate this much below the best earlier one, or more, is reported as a loss."""

ALPHA = 0.05
"""Of a loss anywhere in a flat curve."""

Unit = TypeVar("Unit", bound=Hashable)
"""What contains several loads: a boot, or a block."""


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


@dataclass(frozen=True)
class Loss:
    """The rate at `load` over that at `smaller`: `ratio`, and the `high` end of its one-sided interval.

    `high` is valid for all pairs of the curve together at 95%; None with only one boot or block. `pairs`
    counts these.
    """

    load: int
    smaller: int
    ratio: float
    high: float | None
    pairs: int

    @property
    def shown(self) -> bool:
        """Whether the interval shows a loss, with as many boots as a verdict needs."""
        return self.high is not None and self.high < 1 and self.pairs >= MIN_BOOTS_FOR_VERDICT


def losses(rates: Mapping[int, Mapping[Unit, float]]) -> tuple[Loss, ...]:
    """Every pair of loads of one curve, the smaller load first, without pairs that no unit has.

    `rates`: load -> unit -> its rate, above 0.
    """
    pairs = list(combinations(sorted(rates), 2))
    return tuple(
        _loss(load, smaller, d, ALPHA / len(pairs))
        for smaller, load in pairs
        if (d := _differences(rates[smaller], rates[load]))
    )


def _differences(smaller: Mapping[Unit, float], load: Mapping[Unit, float]) -> list[float]:
    return [math.log(load[unit] / rate) for unit, rate in smaller.items() if unit in load]


def _loss(load: int, smaller: int, d: Sequence[float], alpha: float) -> Loss:
    mean = statistics.fmean(d)
    high = None
    if len(d) > 1:
        high = math.exp(mean + t_quantile(1 - alpha, len(d) - 1) * own_se(d))
    return Loss(load, smaller, math.exp(mean), high, len(d))
