"""The whole calibration: every truth at every number of blocks, planning, stopping; and its targets.

A bound is widened by two Monte Carlo errors; for a target with n cases, by as many as keep the chance that a
rule exactly at the bound misses it at 2.3% (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tools.calibration.error_rates import Rate, Rates, measure
from tools.calibration.promised_power import (
    PILOTS,
    PROMISE,
    STOPPING,
    Promise,
    Stopping,
    kept_pilots,
    promised_power,
    stopping,
)
from tools.calibration.truths import STANDARD, TRUTHS, draw
from vnuma.analysis.checks import AA_ALARM, MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.rank import walsh_coverage

STUDIES = 10_000
SEED = 20190601
BLOCKS = (6, 8, 12)


@dataclass(frozen=True)
class Calibration:
    """The results, with seed and number of studies, which reproduce them."""

    studies: int
    seed: int
    blocks: tuple[int, ...]
    rates: tuple[Rates, ...]
    promises: tuple[Promise, ...]
    pilots: Rate
    stopping: tuple[Stopping, ...]


def calibrate(
    studies: int = STUDIES,
    seed: int = SEED,
    blocks: Sequence[int] = BLOCKS,
    pilots: int = PILOTS,
    progress: Callable[[str], None] = lambda name: None,
) -> Calibration:
    """Simulate `studies` studies for each truth and number of blocks. Each part has its own random stream."""
    rates = []
    for number, truth in enumerate(TRUTHS):
        progress(truth.name)
        rates += [
            measure(draw(truth, count, studies, np.random.default_rng((seed, 1, number, count))))
            for count in blocks
        ]
    progress("power where it is promised")
    promises = [promised_power(count, studies, np.random.default_rng((seed, 2, count))) for count in blocks]
    kept = kept_pilots(STANDARD, np.random.default_rng((seed, 3)), pilots)
    stopped = []
    for number, (truth, target) in enumerate(STOPPING):
        progress(f"stopping at {target * 100:g}%, {truth.name}")
        stopped.append(stopping(truth, target, studies, np.random.default_rng((seed, 4, number))))
    return Calibration(studies, seed, tuple(blocks), tuple(rates), tuple(promises), kept, tuple(stopped))


FAMILY = 0.05
FAMILY_UNEQUAL = 0.065
NORMAL_AT_LEAST = 0.035
COVERAGE = (0.925, 0.97)
FALSE_IF_SKEWED = 0.06
"""Paired errors are less robust than the pooled one where boots are never fast and sometimes slow."""
MUST_FAIL = 0.10
WITHIN_POWER = 0.03


@dataclass(frozen=True)
class Target:
    """One target: `bound` in percent, `found` the rate (0 to 1) nearest to or furthest beyond it."""

    name: str
    bound: str
    found: Rate
    where: str
    met: bool


@dataclass(frozen=True)
class Case:
    """One rate in one case. `bound` holds for all cases of a target: at most, or at least, that share."""

    target: str
    where: str
    bound: float
    rate: Rate
    at_most: bool = True


Found = tuple[str, Rate]
"""Where a rate was found, and the rate."""


def targets(found: Calibration) -> tuple[Target, ...]:
    """Every target, in the order of the table."""
    usable = [rates for rates in found.rates if rates.blocks >= MIN_BOOTS_FOR_VERDICT]
    equal = [rates for rates in usable if rates.truth.group == "equal"]
    unequal = [rates for rates in usable if rates.truth.group == "unequal"]
    fixed = [rates for rates in usable if rates.truth.group == "fixed"]
    normal = [rates for rates in equal if rates.truth.name == "normal"]
    random = [*equal, *unequal]
    skewed = [rates for rates in random if rates.truth.name == "skewed"]
    others = [rates for rates in random if rates.truth.name != "skewed"]
    stopped = [
        (f"{one.truth.name}, {one.target * 100:g}%", rate) for one in found.stopping for rate in one.family
    ]
    same = "false equivalent, all arms at 1%"
    return (
        _target("family-wise error, equal variances", FAMILY, _each(equal, lambda r: r.family)),
        _target("family-wise error, unequal variances", FAMILY_UNEQUAL, _each(unequal, lambda r: r.family)),
        _target(
            "family-wise error, normal", NORMAL_AT_LEAST, _each(normal, lambda r: r.family), at_most=False
        ),
        _target(
            "coverage of each arm", COVERAGE[0], _each(random, lambda r: _rest(r.worst_arm)), at_most=False
        ),
        _target("coverage, normal", COVERAGE[1], _each(normal, lambda r: _rest(r.best_arm))),
        _rank(normal),
        _promise(found.promises),
        Target(
            "plans from a pilot reach 80%",
            "≥ 80",
            found.pilots,
            "3 blocks, 10 df",
            found.pilots.share >= PROMISE - 2 * found.pilots.error,
        ),
        _target(same, FAMILY, _each(others, lambda r: r.false_equivalent)),
        _target(f"{same}, skewed", FALSE_IF_SKEWED, _each(skewed, lambda r: r.false_equivalent)),
        _target("false A/A alarms", AA_ALARM, _each(equal, lambda r: r.a_a_alarm)),
        _target("family-wise error, stopped early", FAMILY_UNEQUAL, stopped),
        _target("fixed order: intervals fail", MUST_FAIL, _each(fixed, lambda r: r.family), at_most=False),
        _target("fixed order: verdicts withheld", 1.0, _each(fixed, lambda r: r.withheld), at_most=False),
    )


def targets_of(cases: Sequence[Case]) -> Iterator[Target]:
    """A target for each kind of hard case."""
    for name in dict.fromkeys(case.target for case in cases):
        mine = [case for case in cases if case.target == name]
        found = [(case.where, case.rate) for case in mine]
        yield _target(name, mine[0].bound, found, at_most=mine[0].at_most)


def _target(name: str, bound: float, cases: Sequence[Found], *, at_most: bool = True) -> Target:
    """All cases at most, or at least, `bound` and the errors that shares exactly at the bound would have."""
    normal = NormalDist()
    z = -normal.inv_cdf(normal.cdf(-2) / len(cases))  # 2 for a single case

    def beyond(case: Found) -> float:
        away = case[1].share - bound
        return (away if at_most else -away) - z * _error(bound, case[1])

    where, worst = max(cases, key=beyond)
    return Target(
        name, f"{'≤' if at_most else '≥'} {bound * 100:g}", worst, where, beyond((where, worst)) <= 0
    )


def _error(bound: float, rate: Rate) -> float:
    """The Monte Carlo error of a share at the bound with as many studies."""
    spread = rate.share * (1 - rate.share)
    if spread == 0 or rate.error == 0:
        return rate.error
    return rate.error * math.sqrt(bound * (1 - bound) / spread)


def _each(rates: Sequence[Rates], of: Callable[[Rates], Rate | None]) -> list[Found]:
    """One rate of each, where it is known."""
    return [(one.where, rate) for one in rates if (rate := of(one)) is not None]


def _rest(rate: Rate) -> Rate:
    return Rate(1 - rate.share, rate.error)


def _rank(cases: Sequence[Rates]) -> Target:
    """The companion's coverage is known exactly for any symmetric truth."""
    exact = {one.where: walsh_coverage(one.blocks) for one in cases}
    found = _each(cases, lambda one: one.rank_error and _rest(one.rank_error))
    gaps = [(abs(rate.share - exact[where]), where, rate) for where, rate in found]
    _, where, rate = max(gaps, key=lambda gap: gap[0])
    met = all(gap <= 2 * rate.error for gap, _, rate in gaps)
    return Target("coverage, rank method, normal", f"{exact[where] * 100:.1f}, exact", rate, where, met)


def _promise(promises: Sequence[Promise]) -> Target:
    worst = max(promises, key=lambda item: abs(item.power.share - PROMISE))
    return Target(
        "power where promised, SD known",
        f"{PROMISE * 100:.0f} ± {WITHIN_POWER * 100:.0f}",
        worst.power,
        f"{worst.effect * 100:.2f}% at B = {worst.blocks}",
        abs(worst.power.share - PROMISE) <= WITHIN_POWER,
    )
