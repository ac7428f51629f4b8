"""Planning: what a design can detect, and how many blocks an effect needs. The rule is simulated.

The noncentral-t formula without the gate would overstate power by up to 12 points.
4,000 studies: +-0.8 points at 80%.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from vnuma.analysis.distributions import FloatArray, chi2_quantile, noncentrality, t_quantile
from vnuma.analysis.simulate import Layout, Null, simulate_null

POWER = 0.80
ALPHA = 0.05
FEWEST_BLOCKS = 6
_PLACES = 300
"""Points of each of two distributions on their common grid: quantiles are within 0.2%."""
# Every number up to 20, then coarser: the simulation's own error is larger than the step.
GRID = (*range(FEWEST_BLOCKS, 21), *range(22, 45, 2), *range(50, 201, 6))


def power(effect: float, sigma: float, layout: Layout) -> float:
    """Probability that an arm slower by `effect` (ratio: 0.01 is 1%) is found, at cell SD `sigma`."""
    needed = _needed_to_detect(simulate_null(layout))
    return float((needed < math.log1p(effect) / sigma).mean())


def power_all(effect: float, sigma: float, layout: Layout) -> float:
    """Probability that every arm is found where all are slower by `effect`."""
    needed = _needed_to_detect(simulate_null(layout)).reshape(-1, layout.arms)
    return float((needed < math.log1p(effect) / sigma).all(axis=1).mean())


def power_equivalent(margin: float, sigma: float, layout: Layout) -> float:
    """Probability that an arm without any effect is called equivalent within `margin`."""
    needed = _needed_for_equivalence(simulate_null(layout))
    return float((needed < math.log1p(margin) / sigma).mean())


def detectable_effect(sigma: float, layout: Layout) -> float:
    """The effect (ratio: 0.01 is 1%) that the design likely (80%) detects."""
    return math.expm1(ratio_needed(layout) * sigma)


def detectable_by_pairs(sd: float, blocks: int, arms: int) -> float:
    """The same (ln scale) for an arm with its own pairs' error, whose differences have that SD."""
    critical = t_quantile(1 - ALPHA / (2 * arms), blocks - 1)
    return noncentrality(POWER, critical, blocks - 1) * sd / math.sqrt(blocks)


def equivalent_by_pairs(sd: float, blocks: int, arms: int) -> float:
    """The margin (ln scale) within which such an arm, without effect, is likely called equivalent."""
    return _pairs_within(blocks, arms) * sd / math.sqrt(blocks)


@lru_cache(maxsize=256)
def _pairs_within(blocks: int, arms: int) -> float:
    """Quantile of |z| + t s: z the standard normal mean, s^2 a chi-square over its df, on a grid of both."""
    df, normal = blocks - 1, NormalDist()
    shares = [(place + 0.5) / _PLACES for place in range(_PLACES)]
    z = np.array([normal.inv_cdf((1 + share) / 2) for share in shares])
    s = np.sqrt([chi2_quantile(share, df) / df for share in shares])
    return float(np.quantile(z[:, None] + t_quantile(1 - ALPHA / arms, df) * s[None, :], POWER))


@lru_cache(maxsize=4096)
def ratio_needed(layout: Layout) -> float:
    """delta/sigma, delta = ln(1 + effect), at which detection has probability POWER."""
    return float(np.quantile(_needed_to_detect(simulate_null(layout)), POWER))


@lru_cache(maxsize=4096)
def ratio_for_equivalence(layout: Layout) -> float:
    """delta/sigma at which an arm without effect is called equivalent with probability POWER."""
    return float(np.quantile(_needed_for_equivalence(simulate_null(layout)), POWER))


def blocks_to_detect(effect: float, sigma: float, arms: int, references: int) -> int | None:
    """Fewest blocks, at least 6, that likely (80%) detect the effect; None beyond 200."""
    return fewest_blocks(
        math.log1p(effect) / sigma, lambda blocks: ratio_needed(Layout(arms, references, blocks))
    )


def blocks_for_equivalence(margin: float, sigma: float, arms: int, references: int) -> int | None:
    """Fewest blocks, at least 6, that likely call an arm without effect equivalent; None beyond 200."""
    return fewest_blocks(
        math.log1p(margin) / sigma, lambda blocks: ratio_for_equivalence(Layout(arms, references, blocks))
    )


@lru_cache(maxsize=4096)
def ratio_for_width(layout: Layout) -> float:
    """width/sigma that the widest of the 95% half-widths keeps with probability POWER; ln scale."""
    return float(np.quantile(simulate_null(layout).half_width_95.max(axis=1), POWER))


def blocks_for_width(width: float, sigma: float, arms: int, references: int) -> int | None:
    """Fewest blocks, at least 6, whose half-widths are likely (80%) all at most `width`; None beyond 200."""
    if sigma == 0:
        return FEWEST_BLOCKS
    return fewest_blocks(
        math.log1p(width) / sigma, lambda blocks: ratio_for_width(Layout(arms, references, blocks))
    )


def _needed_to_detect(null: Null) -> FloatArray:
    """The delta/sigma from which each simulated arm would be found slower."""
    return np.asarray(null.half_width_95 - null.estimate).ravel()


def _needed_for_equivalence(null: Null) -> FloatArray:
    """The delta/sigma from which each simulated arm would be called equivalent."""
    return np.asarray(np.abs(null.estimate) + null.half_width_90).ravel()


def fewest_blocks(available: float, needed: Callable[[int], float]) -> int | None:
    """Bisection over the grid of designs, since requirements fall as blocks are added."""
    place = bisect.bisect_left(GRID, True, key=lambda blocks: needed(blocks) <= available)
    return GRID[place] if place < len(GRID) else None
