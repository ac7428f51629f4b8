"""The verdict of each arm of many simulated studies at once, by the table in `verdict`.

A test compares every verdict, interval and p with `analyse` on sampled studies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vnuma.analysis.calibration.truths import Studies
from vnuma.analysis.distributions import FloatArray, t_quantile
from vnuma.analysis.instrument_checks import AA_ALARM, BOOTS_FOR_WORDS
from vnuma.analysis.outliers import is_rare
from vnuma.analysis.rank import rank_limits, walsh_averages, walsh_cut
from vnuma.analysis.simulate import BoolArray, Simulated, differences


@dataclass(frozen=True, eq=False)
class Words:
    """Which verdict each arm of each study gets: exactly one is true, `withheld` included."""

    slower: BoolArray
    faster: BoolArray
    equivalent: BoolArray
    undecided: BoolArray
    too_few: BoolArray
    withheld: BoolArray


def outcome(studies: Studies) -> Simulated:
    """The comparison on the cell values of these studies."""
    return Simulated(studies.cells, studies.truth.references)


def found_slower(result: Simulated, effect: float | FloatArray) -> BoolArray:
    """Per study and arm: whether the 95% interval of an arm slower by `effect` (ln scale) is above 1."""
    return np.asarray(result.estimate + effect - result.half_width_95 > 0)


def found_faster(result: Simulated, effect: float | FloatArray) -> BoolArray:
    """The same below 1."""
    return np.asarray(result.estimate + effect + result.half_width_95 < 0)


def within_band(result: Simulated, effect: float | FloatArray, margin: float) -> BoolArray:
    """Whether an arm slower by `effect` is called equivalent: 90% interval in the band, few odd boots."""
    band = math.log1p(margin)
    inside = np.abs(result.estimate + effect) + result.half_width_90 < band
    apart = (result.odd_arm > band).sum(axis=1) + (result.odd_reference > band).sum(axis=(1, 2))[:, None]
    return np.asarray(inside & is_rare(apart, result.odd_arm.shape[1]))


def prediction_width(result: Simulated) -> FloatArray:
    """Per study and arm: half the range for one more boot relative to one of the reference, 95%."""
    y, r = result.y, result.references
    one = np.mean([(y[:, :, r:] - y[:, :, [at]]).var(axis=1, ddof=1) for at in range(r)], axis=0)
    return np.asarray(t_quantile(0.975, y.shape[1] - 1) * np.sqrt(result.own_se**2 + one))


def some_arm(each: BoolArray) -> BoolArray:
    """Per study: whether it is true of any arm."""
    return np.asarray(each.any(axis=1))


def words(
    result: Simulated, blocks: int, *, fixed_order: bool, margin: float, effect: float | FloatArray = 0.0
) -> Words:
    """The verdicts when arms are slower by `effect` (ln scale), each or all; `margin` is a ratio:
    0.01 is 1%.
    """
    withheld = np.full(result.estimate.shape, fixed_order)
    if result.a_a_p is not None:
        withheld |= (result.a_a_p < AA_ALARM)[:, None]
    too_few = ~withheld & (blocks < BOOTS_FOR_WORDS)
    free = ~withheld & ~too_few
    equivalent = free & within_band(result, effect, margin)
    free &= ~equivalent
    slower = free & found_slower(result, effect)
    faster = free & found_faster(result, effect)
    return Words(slower, faster, equivalent, free & ~slower & ~faster, too_few, withheld)


def rank_intervals(studies: Studies) -> tuple[FloatArray, FloatArray] | None:
    """The companion's limits per study and arm, ln scale; None below 6 blocks."""
    d = np.moveaxis(differences(studies.cells, studies.truth.references), 1, 2)
    cut = walsh_cut(d.shape[2])
    return None if cut is None else rank_limits(walsh_averages(d), cut)
