"""How often the rule is right and wrong for one known truth, with Monte Carlo errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tools.calibration.truths import Studies, Truth
from vnuma.analysis.cells import Grid
from vnuma.analysis.checks import AA_ALARM, MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.compare import Comparison, compare
from vnuma.analysis.distributions import FloatArray
from vnuma.analysis.fit import Place, terms
from vnuma.analysis.outliers import is_rare
from vnuma.analysis.rank import rank_limits, walsh_averages, walsh_cut
from vnuma.analysis.rounding import NO_ROUNDING, Rounding
from vnuma.analysis.simulate import BoolArray, Simulated, differences
from vnuma.analysis.stopping import RepeatedLooks

ALPHA = 0.05
EFFECTS = (0.005, 0.01, 0.02, 0.05)
MARGIN = 0.01
BAND = math.log1p(MARGIN)


def outcome(studies: Studies) -> Simulated:
    """The comparison on the cell values of these studies."""
    return Simulated(studies.cells, studies.truth.references)


def compared(
    y: FloatArray,
    truth: Truth,
    *,
    places: FloatArray | None = None,
    place: Place = "linear",
    rounding: Rounding = NO_ROUNDING,
    looks: RepeatedLooks | None = None,
) -> Comparison:
    """One study through the product's own functions, where the closed form does not apply.

    `y[block, column]` is NaN where a cell is missing; `places` are a covariate's.
    """
    labels = tuple(map(str, range(truth.columns)))
    x = None if places is None else terms(places, place, truth.columns)
    grid = Grid(labels, tuple(range(len(y))), y, x)
    present = grid.only(label for c, label in enumerate(labels) if not np.isnan(y[:, c]).all())
    arms = {label: label for label in labels[truth.references :]}
    return compare(present, labels[: truth.references], arms, ALPHA, rounding, looks)


def found_slower(result: Simulated, effect: float | FloatArray) -> BoolArray:
    """Per study and arm: whether the 95% interval of an arm slower by `effect` (ln scale) is above 1."""
    return np.asarray(result.estimate + effect - result.half_width_95 > 0)


def found_faster(result: Simulated, effect: float | FloatArray) -> BoolArray:
    """The same below 1."""
    return np.asarray(result.estimate + effect + result.half_width_95 < 0)


def within_band(result: Simulated, effect: float | FloatArray = 0.0) -> BoolArray:
    """Whether an arm slower by `effect` is called equivalent: 90% interval in the band, few odd boots."""
    inside = np.abs(result.estimate + effect) + result.half_width_90 < BAND
    odd = (result.odd_arm > BAND).sum(axis=1) + (result.odd_reference > BAND).sum(axis=(1, 2))[:, None]
    return np.asarray(inside & is_rare(odd, result.odd_arm.shape[1]))


def some_arm(each: BoolArray) -> BoolArray:
    """Per study: whether it is true of any arm."""
    return np.asarray(each.any(axis=1))


def any_found(result: Simulated) -> BoolArray:
    """Per study without any effect: whether some arm is found slower or faster."""
    return some_arm(found_slower(result, 0.0) | found_faster(result, 0.0))


def words(
    result: Simulated, *, fixed_order: bool = False, effect: float | FloatArray = 0.0
) -> dict[str, BoolArray]:
    """Which verdict each arm of each study gets, exactly one, when arms are slower by `effect` (ln scale)."""
    withheld = np.full(result.estimate.shape, fixed_order)
    if result.a_a_p is not None:
        withheld |= (result.a_a_p < AA_ALARM)[:, None]
    too_few = ~withheld & (result.y.shape[1] < MIN_BOOTS_FOR_VERDICT)
    free = ~withheld & ~too_few
    equivalent = free & within_band(result, effect)
    free &= ~equivalent
    slower = free & found_slower(result, effect)
    faster = free & found_faster(result, effect)
    return {
        "slower": slower,
        "faster": faster,
        "equivalent": equivalent,
        "undecided": free & ~slower & ~faster,
        "too_few": too_few,
        "withheld": withheld,
    }


def rank_intervals(studies: Studies) -> tuple[FloatArray, FloatArray] | None:
    """The companion's limits per study and arm, ln scale; None below 6 blocks."""
    d = np.moveaxis(differences(studies.cells, studies.truth.references), 1, 2)
    cut = walsh_cut(d.shape[2])
    return None if cut is None else rank_limits(walsh_averages(d), cut)


def _paper_rates(studies: Studies) -> Iterator[float]:
    """By the paper's method, shares of studies without any effect: a false finding per comparison, for some
    arm, and all arms' medians in the order of the table (1 in 120 for five arms by chance).
    """
    from scipy import stats  # noqa: PLC0415 - its import takes a second

    runs = studies.paper
    wrong = stats.ttest_ind(runs[:, 1:], runs[:, :1], axis=2, equal_var=False).pvalue < ALPHA
    steps = np.diff(np.median(runs, axis=2), axis=1)
    for each in (wrong, wrong.any(axis=1), (steps > 0).all(axis=1)):
        yield float(each.mean())


@dataclass(frozen=True)
class Rate:
    """A share of simulated studies (0 to 1) with its Monte Carlo standard error."""

    share: float
    error: float

    @classmethod
    def of(cls, happened: BoolArray | FloatArray) -> Rate:
        """From one value per study, or per study and arm: a study's arms are not independent."""
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
    truth, per comparison. `paper`: by the paper's method (`_paper_rates`).
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
    paper: tuple[float, ...]

    @property
    def where(self) -> str:
        """As a table names it."""
        return f"{self.truth.name}, B = {self.blocks}"

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
    truth, result, ranks = studies.truth, outcome(studies), rank_intervals(studies)
    missed = np.asarray(np.abs(result.estimate) > result.unadjusted)
    said = words(result, fixed_order=truth.fixed_order)
    return Rates(
        truth=truth,
        blocks=studies.cells.shape[1],
        arms=tuple(Rate.of(missed[:, arm]) for arm in range(truth.arms)),
        per_comparison=Rate.of(missed),
        family=Rate.of(any_found(result)),
        false_word=Rate.of(some_arm(said["slower"] | said["faster"])),
        withheld=Rate.of(some_arm(said["withheld"])),
        power=tuple(Rate.of(found_slower(result, math.log1p(effect))) for effect in EFFECTS),
        called_equivalent=Rate.of(within_band(result)),
        false_equivalent=Rate.of(some_arm(within_band(result, BAND))),
        a_a_alarm=None if result.a_a_p is None else Rate.of(result.a_a_p < AA_ALARM),
        rank_error=None if ranks is None else Rate.of(np.asarray((ranks[0] > 0) | (ranks[1] < 0))),
        paper=tuple(_paper_rates(studies)),
    )
