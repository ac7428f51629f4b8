"""How often the rule is right and wrong for one known truth, with Monte Carlo errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vnuma.analysis.calibration.paper import PaperRates, paper_rates
from vnuma.analysis.calibration.rule import (
    found_faster,
    found_slower,
    outcome,
    rank_intervals,
    some_arm,
    within_band,
    words,
)
from vnuma.analysis.calibration.truths import Studies, Truth
from vnuma.analysis.instrument_checks import AA_ALARM
from vnuma.analysis.simulate import BoolArray

EFFECTS = (0.005, 0.01, 0.02, 0.05)
MARGIN = 0.01


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
    paper: PaperRates

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
    excluded = found_slower(result, 0.0) | found_faster(result, 0.0)
    said = words(result, blocks, fixed_order=truth.fixed_order, margin=MARGIN)
    return Rates(
        truth=truth,
        blocks=blocks,
        arms=tuple(Rate.of(missed[:, arm]) for arm in range(truth.arms)),
        per_comparison=Rate.of(missed),
        family=Rate.of(some_arm(excluded)),
        false_word=Rate.of(some_arm(said.slower | said.faster)),
        withheld=Rate.of(some_arm(said.withheld)),
        power=tuple(Rate.of(found_slower(result, math.log1p(effect))) for effect in EFFECTS),
        called_equivalent=Rate.of(within_band(result, 0.0, MARGIN)),
        false_equivalent=Rate.of(some_arm(within_band(result, math.log1p(MARGIN), MARGIN))),
        a_a_alarm=None if result.a_a_p is None else Rate.of(result.a_a_p < AA_ALARM),
        rank_error=_rank_error(studies),
        paper=paper_rates(studies),
    )


def _rank_error(studies: Studies) -> Rate | None:
    limits = rank_intervals(studies)
    return None if limits is None else Rate.of(np.asarray((limits[0] > 0) | (limits[1] < 0)))
