"""Whether the gap grows with size: a slope score per cell, analysed like the cell value.

Never tested as arm x size with iterations as replicates (6 to 21% false), nor on milliseconds, where a
constant percentage grows by itself.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeVar

from vnuma.analysis.cells import Boot
from vnuma.analysis.checks import MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.compare import Contrast, own_se
from vnuma.analysis.distributions import t_quantile
from vnuma.analysis.records import worsening
from vnuma.analysis.rounding import ROUNDING
from vnuma.analysis.verdict import Withheld
from vnuma.domain.workloads.metric import Better

Trend = Literal["falls behind", "gains", "undecided", "too few boots"]


@dataclass(frozen=True)
class Growth:
    """How the difference from the reference changes when the work doubles.

    `points` are percentage points per doubling of `doubled`; limits are simultaneous at 95%, None without an
    error. `trend`: whether the arm gets slower or faster with size, or neither is shown.
    """

    arm: str
    points: float | None
    low: float | None
    high: float | None
    adjusted_p: float | None
    trend: Trend
    withheld: Withheld | None
    doubled: str = "rows"


_A_SIDE = " a side"


def doubled_work(size_word: str) -> str:
    """What a doubling counts: `rows` for "rows a side", whose pairs are the square; else the
    size's own unit.
    """
    return size_word.removesuffix(_A_SIDE)


def slope_weights(sizes: Sequence[int], size_word: str) -> tuple[float, ...]:
    """Weights w of the score sum(w ln t): x_c / sum(x_c^2), x = ln(work) centred.

    Work is the size, but its square where the size is given for each side of a join.
    """
    power = 2 if size_word.endswith(_A_SIDE) else 1
    x = [power * math.log(size) for size in sizes]
    mean = math.fsum(x) / len(x)
    square = math.fsum((value - mean) ** 2 for value in x)
    return tuple((value - mean) / square for value in x)


def slope_score(sizes: Sequence[int], size_word: str) -> Callable[[Boot], float]:
    """The score of a cell: its slope of ln(figure) on ln(work)."""
    weights = slope_weights(sizes, size_word)
    return lambda boot: math.fsum(w * math.log(x) for w, x in zip(weights, boot.medians, strict=True))


def growth(
    contrast: Contrast, withheld: Withheld | None, better: Better = "lower", doubled: str = "rows"
) -> Growth:
    """Interpret one contrast of slope scores."""
    scale = 100 * math.log(2)
    estimate, inference = contrast.log_ratio, contrast.inference
    if estimate is None or inference is None:
        points = None if estimate is None else scale * estimate
        return Growth(contrast.arm, points, None, None, None, "too few boots", withheld, doubled)
    low, high = estimate - inference.half_width, estimate + inference.half_width
    trend: Trend = "falls behind" if worsening(low, better) > 0 else "gains"
    if withheld or (low <= ROUNDING and high >= -ROUNDING):
        trend = "undecided"
    if not withheld and contrast.boots < MIN_BOOTS_FOR_VERDICT:
        trend = "too few boots"
    return Growth(
        contrast.arm,
        scale * estimate,
        scale * low,
        scale * high,
        inference.adjusted_p,
        trend,
        withheld,
        doubled,
    )


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
    found = []
    for smaller, load in pairs:
        d = [
            math.log(rates[load][unit] / rate) for unit, rate in rates[smaller].items() if unit in rates[load]
        ]
        if d:
            mean, high = statistics.fmean(d), None
            if len(d) > 1:
                high = math.exp(mean + t_quantile(1 - ALPHA / len(pairs), len(d) - 1) * own_se(d))
            found.append(Loss(load, smaller, math.exp(mean), high, len(d)))
    return tuple(found)
