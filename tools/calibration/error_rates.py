"""How often the rule is right and wrong for one known truth, with Monte Carlo errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tools.calibration.truths import Studies, Truth
from vnuma.analysis.checks import AA_ALARM, MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.distributions import FloatArray
from vnuma.analysis.outliers import is_rare
from vnuma.analysis.rank import rank_limits, walsh_averages, walsh_cut
from vnuma.analysis.simulate import BoolArray, Simulated, differences

_LEVEL = 0.05
EFFECTS = (0.005, 0.01, 0.02, 0.05)
MARGIN = 0.01


@dataclass(frozen=True, eq=False)
class _Words:
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
    odd = (result.odd_arm > band).sum(axis=1) + (result.odd_reference > band).sum(axis=(1, 2))[:, None]
    return np.asarray(inside & is_rare(odd, result.odd_arm.shape[1]))


def some_arm(each: BoolArray) -> BoolArray:
    """Per study: whether it is true of any arm."""
    return np.asarray(each.any(axis=1))


def any_found(result: Simulated) -> BoolArray:
    """Per study without any effect: whether some arm is found slower or faster."""
    return some_arm(found_slower(result, 0.0) | found_faster(result, 0.0))


def words(
    result: Simulated, blocks: int, *, fixed_order: bool, margin: float, effect: float | FloatArray = 0.0
) -> _Words:
    """The verdicts when arms are slower by `effect` (ln scale), each or all; `margin` is a ratio:
    0.01 is 1%.
    """
    withheld = np.full(result.estimate.shape, fixed_order)
    if result.a_a_p is not None:
        withheld |= (result.a_a_p < AA_ALARM)[:, None]
    too_few = ~withheld & (blocks < MIN_BOOTS_FOR_VERDICT)
    free = ~withheld & ~too_few
    equivalent = free & within_band(result, effect, margin)
    free &= ~equivalent
    slower = free & found_slower(result, effect)
    faster = free & found_faster(result, effect)
    return _Words(slower, faster, equivalent, free & ~slower & ~faster, too_few, withheld)


def rank_intervals(studies: Studies) -> tuple[FloatArray, FloatArray] | None:
    """The companion's limits per study and arm, ln scale; None below 6 blocks."""
    d = np.moveaxis(differences(studies.cells, studies.truth.references), 1, 2)
    cut = walsh_cut(d.shape[2])
    return None if cut is None else rank_limits(walsh_averages(d), cut)


@dataclass(frozen=True)
class _PaperRates:
    """Shares of studies without any effect: a false finding per comparison, for some arm, and all
    arms' medians in the order of the table (1 in 120 for five arms by chance)."""

    per_comparison: float
    family: float
    in_order: float


def _paper_rates(studies: Studies) -> _PaperRates:
    """The paper's method on these studies."""
    from scipy import stats  # noqa: PLC0415 - its import takes a second

    runs = studies.paper
    wrong = stats.ttest_ind(runs[:, 1:], runs[:, :1], axis=2, equal_var=False).pvalue < _LEVEL
    steps = np.diff(np.median(runs, axis=2), axis=1)
    return _PaperRates(
        float(wrong.mean()), float(wrong.any(axis=1).mean()), float((steps > 0).all(axis=1).mean())
    )


@dataclass(frozen=True)
class Rate:
    """A share of simulated studies (0 to 1) with its Monte Carlo standard error."""

    share: float
    error: float

    @classmethod
    def of(cls, happened: BoolArray) -> Rate:
        """From one boolean per study, or per study and arm: a study's arms are not independent."""
        each = happened if happened.ndim == 1 else happened.mean(axis=1)
        return cls(float(each.mean()), float(each.std() / math.sqrt(len(each))))


@dataclass(frozen=True)
class Rates:
    """One truth at one number of blocks; no arm differs from the reference unless stated.

    `arms`: for each arm, how often its own 95% interval (not adjusted for other arms) misses the truth;
    `per_comparison` is their mean, and coverage is the rest. `family`: some arm's simultaneous 95% interval
    misses it. `false_word`: some arm is called slower or faster. `withheld`: verdicts are. `power`: an arm
    slower by each of EFFECTS is found. `called_equivalent`: an arm without effect is. `false_equivalent`:
    some arm is although each is exactly at the margin. `rank_error`: the companion's interval misses the
    truth, per comparison.
    """

    truth: Truth
    blocks: int
    arms: tuple[Rate, ...]
    per_comparison: Rate
    family: Rate
    false_word: Rate
    withheld: Rate
    power: tuple[Rate, ...]
    called_equivalent: Rate
    false_equivalent: Rate
    a_a_alarm: Rate | None
    rank_error: Rate | None
    paper: _PaperRates

    @property
    def worst_arm(self) -> Rate:
        """The arm whose interval misses the truth most often."""
        return max(self.arms, key=lambda rate: rate.share)

    @property
    def best_arm(self) -> Rate:
        """The arm whose interval misses it least often."""
        return min(self.arms, key=lambda rate: rate.share)


def measure(studies: Studies) -> Rates:
    """All rates of these studies."""
    truth, result = studies.truth, outcome(studies)
    blocks = studies.cells.shape[1]
    missed = np.asarray(np.abs(result.estimate) > result.unadjusted)
    said = words(result, blocks, fixed_order=truth.fixed_order, margin=MARGIN)
    return Rates(
        truth=truth,
        blocks=blocks,
        arms=tuple(Rate.of(missed[:, arm]) for arm in range(truth.arms)),
        per_comparison=Rate.of(missed),
        family=Rate.of(any_found(result)),
        false_word=Rate.of(some_arm(said.slower | said.faster)),
        withheld=Rate.of(some_arm(said.withheld)),
        power=tuple(Rate.of(found_slower(result, math.log1p(effect))) for effect in EFFECTS),
        called_equivalent=Rate.of(within_band(result, 0.0, MARGIN)),
        false_equivalent=Rate.of(some_arm(within_band(result, math.log1p(MARGIN), MARGIN))),
        a_a_alarm=None if result.a_a_p is None else Rate.of(result.a_a_p < AA_ALARM),
        rank_error=_rank_error(studies),
        paper=_paper_rates(studies),
    )


def _rank_error(studies: Studies) -> Rate | None:
    limits = rank_intervals(studies)
    return None if limits is None else Rate.of(np.asarray((limits[0] > 0) | (limits[1] < 0)))
