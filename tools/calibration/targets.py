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
    return (
        at_most("family-wise error, equal variances", FAMILY, _cases(equal, lambda r: r.family)),
        at_most("family-wise error, unequal variances", FAMILY_UNEQUAL, _cases(unequal, lambda r: r.family)),
        at_least("family-wise error, normal", NORMAL_AT_LEAST, _cases(normal, lambda r: r.family)),
        at_least("coverage of each arm", COVERAGE[0], _coverage([*equal, *unequal], worst=True)),
        at_most("coverage, normal", COVERAGE[1], _coverage(normal, worst=False)),
        _rank(normal),
        _promise(found.promises),
        Target(
            "plans from a pilot reach 80%",
            "≥ 80",
            found.pilots,
            "3 blocks, 10 df",
            found.pilots.share >= PROMISE - 2 * found.pilots.error,
        ),
        at_most("false equivalent, all arms at 1%", FAMILY, _false_equivalent(usable, skewed=False)),
        at_most(
            "false equivalent, all arms at 1%, skewed",
            FALSE_IF_SKEWED,
            _false_equivalent(usable, skewed=True),
        ),
        at_most("false A/A alarms", AA_ALARM, _cases(equal, lambda r: r.a_a_alarm)),
        at_most("family-wise error, stopped early", FAMILY_UNEQUAL, _stopped(found.stopping)),
        at_least("fixed order: intervals fail", MUST_FAIL, _cases(fixed, lambda r: r.family)),
        at_least("fixed order: verdicts withheld", 1.0, _cases(fixed, lambda r: r.withheld)),
    )


def _false_equivalent(rates: Sequence[Rates], *, skewed: bool) -> list[Found]:
    mine = [one for one in rates if not one.truth.fixed_order and (one.truth.name == "skewed") == skewed]
    return _cases(mine, lambda one: one.false_equivalent)


def at_most(name: str, bound: float, cases: Sequence[Found]) -> Target:
    """All cases at most `bound` + the errors that shares exactly at the bound would have."""
    z = _widened(cases)
    worst = max(cases, key=lambda case: case[1].share - z * _error(bound, case[1]))
    met = all(case[1].share <= bound + z * _error(bound, case[1]) for case in cases)
    return Target(name, f"≤ {bound * 100:g}", worst[1], worst[0], met)


def at_least(name: str, bound: float, cases: Sequence[Found]) -> Target:
    """The same with at least `bound`."""
    z = _widened(cases)
    worst = min(cases, key=lambda case: case[1].share + z * _error(bound, case[1]))
    met = all(case[1].share >= bound - z * _error(bound, case[1]) for case in cases)
    return Target(name, f"≥ {bound * 100:g}", worst[1], worst[0], met)


def _widened(cases: Sequence[Found]) -> float:
    """By how many Monte Carlo errors: 2 for a single case."""
    normal = NormalDist()
    return -normal.inv_cdf(normal.cdf(-2) / len(cases))


def _error(bound: float, rate: Rate) -> float:
    """The Monte Carlo error of a share at the bound with as many studies."""
    spread = rate.share * (1 - rate.share)
    if spread == 0 or rate.error == 0:
        return rate.error
    return rate.error * math.sqrt(bound * (1 - bound) / spread)


def _cases(rates: Sequence[Rates], of: Callable[[Rates], Rate | None]) -> list[Found]:
    """One rate of each, where it is known."""
    return [(_where(one), rate) for one in rates if (rate := of(one)) is not None]


def _coverage(cases: Sequence[Rates], *, worst: bool) -> list[Found]:
    arms = [(rates, rates.worst_arm if worst else rates.best_arm) for rates in cases]
    return [(_where(rates), Rate(1 - arm.share, arm.error)) for rates, arm in arms]


def _stopped(cases: Sequence[Stopping]) -> list[Found]:
    return [(f"{item.truth.name}, {item.target * 100:g}%", rate) for item in cases for rate in item.family]


def _rank(cases: Sequence[Rates]) -> Target:
    """The companion's coverage is known exactly for any symmetric truth."""
    gaps = []
    for rates in cases:
        if rates.rank_error is not None:
            exact = walsh_coverage(rates.blocks)
            gaps.append((abs(1 - rates.rank_error.share - exact), exact, rates))
    _, exact, rates = max(gaps, key=lambda item: item[0])
    error = rates.rank_error or Rate(0, 0)
    met = all(gap <= 2 * (rates.rank_error.error if rates.rank_error else 0) for gap, _, rates in gaps)
    return Target(
        "coverage, rank method, normal",
        f"{exact * 100:.1f}, exact",
        Rate(1 - error.share, error.error),
        _where(rates),
        met,
    )


def _promise(promises: Sequence[Promise]) -> Target:
    worst = max(promises, key=lambda item: abs(item.power.share - PROMISE))
    return Target(
        "power where promised, SD known",
        f"{PROMISE * 100:.0f} ± {WITHIN_POWER * 100:.0f}",
        worst.power,
        f"{worst.effect * 100:.2f}% at B = {worst.blocks}",
        all(abs(item.power.share - PROMISE) <= WITHIN_POWER for item in promises),
    )


def _where(rates: Rates) -> str:
    return f"{rates.truth.name}, B = {rates.blocks}"


def targets_of(cases: Sequence[Case]) -> Iterator[Target]:
    """A target for each kind of hard case."""
    for name in dict.fromkeys(case.target for case in cases):
        mine = [case for case in cases if case.target == name]
        compared = at_most if mine[0].at_most else at_least
        yield compared(name, mine[0].bound, [(case.where, case.rate) for case in mine])
