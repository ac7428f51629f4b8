"""How often each kind of sentence in a report is true, in simulated studies."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tools.calibration.error_rates import (
    ALPHA,
    BAND,
    Rate,
    any_found,
    found_slower,
    outcome,
    some_arm,
    within_band,
    words,
)
from tools.calibration.promised_power import PROMISE, SIGMA
from tools.calibration.targets import Case
from tools.calibration.truths import HEAVY, ITERATIONS, NOISY_ARM, STANDARD, Truth, draw, normal, scatter
from vnuma.analysis.distributions import FloatArray
from vnuma.analysis.growth import slope_weights
from vnuma.analysis.planning import GRID, ArmError, detectable_by_pairs, ratio_needed
from vnuma.analysis.sensitivity import LEVEL, sign_flip_p
from vnuma.analysis.simulate import Layout, Simulated, differences
from vnuma.analysis.variance import pilot_upper

BLOCKS = (6, 8, 12)
FASTER = -math.log(1.015)
SIZES = (500, 1000, 2000, 3000)
ANY_FAMILY = 0.13
"""docs/statistics.md's figure for all three kinds of verdicts together."""
MOST_NAMED = 44
"""Larger numbers of blocks are not simulated: they only detect more."""
TELLING = 4000
_NAMED = [blocks for blocks in GRID if blocks <= MOST_NAMED]
GATE_MISSES = 0.75
"""One arm with twice the scatter, which the gate misses in some studies; these then apply to all arms."""


def sentence_cases(studies: int, few: int, generator: np.random.Generator) -> Iterator[Case]:
    """Every kind of sentence; `few` studies are simulated one by one."""
    each = iter(generator.spawn(5))
    yield from _detects(studies, next(each))
    yield from _would_decide(studies, next(each))
    yield from _advice(studies, next(each))
    yield from _sizes(studies, next(each))
    yield from _sign_flips(few, next(each))


def _detects(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """ "B blocks likely (80%) detect a difference of X": whether they do, in every arm."""
    what = "detects what it says"
    for truth, target, bound in (
        (STANDARD, what, PROMISE),
        (NOISY_ARM, f"{what}, one arm noisier", GATE_MISSES),
    ):
        for blocks in BLOCKS:
            said = said_to_detect(outcome(draw(truth, blocks, studies, generator)))
            again = outcome(draw(truth, blocks, studies, generator))
            really = np.quantile(again.half_width_95 - again.estimate, PROMISE, axis=0).max()
            where = f"{truth.name}, B = {blocks}"
            yield Case(target, where, bound, Rate.of(said >= really), at_most=False)


def said_to_detect(found: Simulated) -> FloatArray:
    """On the ln scale: by the upper bound of the spread, and of arms with their own pairs' error."""
    _, blocks, k = found.y.shape
    arms, r = k - found.references, found.references
    pooled = ratio_needed(Layout(arms, r, blocks)) * np.sqrt(found.ms * pilot_upper(1.0, found.df))
    sd = found.own_se * math.sqrt(blocks * pilot_upper(1.0, blocks - 1))
    own = np.where(found.own, detectable_by_pairs(1.0, blocks, arms) * sd, 0.0)
    return np.asarray(np.maximum(pooled, own.max(axis=1)))


def _would_decide(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """Whether "about N blocks would likely tell a difference of 1% from none", for each undecided arm."""
    what = "distinguishes it from none with the blocks it names"
    for truth in (STANDARD, NOISY_ARM):
        chance = np.array([_tells(truth, blocks, generator) for blocks in _NAMED])
        for blocks in BLOCKS:
            found = outcome(draw(truth, blocks, studies, generator))
            said = words(found)
            named = named_blocks(found)
            told = said["undecided"] & (named > blocks) & (named <= MOST_NAMED)
            most = np.where(told, named, 0).max(axis=1)
            kept = chance[np.searchsorted(_NAMED, np.maximum(most, _NAMED[0]))]
            where = f"{truth.name}, B = {blocks}, on average"
            if told.any():
                yield Case(what, where, PROMISE, Rate.of(kept[told]), at_most=False)
            if truth is NOISY_ARM and told[:, -1].any():
                own = Rate.of(kept[told[:, -1], -1])
                yield Case(f"{what}, the noisier arm", where, GATE_MISSES, own, at_most=False)


def _tells(truth: Truth, blocks: int, generator: np.random.Generator) -> FloatArray:
    """Per arm: the chance that this many blocks detect the margin, or that no effect is called equivalent."""
    spread = np.array(truth.spread or (1.0,) * truth.columns)
    y = SIGMA * spread * generator.standard_normal((TELLING, blocks, truth.columns))
    found = Simulated(y, truth.references)
    detected = found_slower(found, BAND).mean(axis=0)
    return np.asarray(np.minimum(detected, within_band(found).mean(axis=0)))


def named_blocks(found: Simulated) -> FloatArray:
    """Per study and arm: the blocks in a report if the arm were undecided; infinity beyond 200."""
    _, blocks, k = found.y.shape
    arms, r = k - found.references, found.references
    pooled, own = (
        np.array([ArmError(1.0, one, 0.0, arms, r).decidable_effect(each) for each in GRID])
        for one in (False, True)
    )
    sd = np.sqrt(found.ms * pilot_upper(1.0, found.df))[:, None]
    sd_own = found.own_se * math.sqrt(blocks * pilot_upper(1.0, blocks - 1))
    grid = np.array([*GRID, math.inf])
    by_pool, by_pairs = (
        grid[len(GRID) - np.searchsorted(needed[::-1], BAND / each, side="right")]
        for needed, each in ((pooled, sd), (own, sd_own))
    )
    return np.asarray(np.where(found.own, by_pairs, by_pool))


def _advice(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """ "Use 1x16" although one arm is truly 1.5% faster, and the others are equal."""
    effect = np.array([0.0] * (STANDARD.arms - 1) + [FASTER])
    for blocks in BLOCKS:
        found = outcome(draw(STANDARD, blocks, studies, generator))
        said = words(found, effect=effect)
        held_back = said["undecided"] | said["too_few"] | said["withheld"] | said["faster"]
        where = f"one arm 1.5% faster, B = {blocks}"
        yield Case("the reference advised", where, 0.05, Rate.of(~some_arm(held_back)))


def _sizes(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """Verdicts over all sizes, at single sizes and of growth: three families, in a study without
    any effect.
    """
    for boots, at_size in ((0.003, 0.01), (0.01, 0.0)):
        truth = Truth("", boots=scatter(boots))
        for blocks in (6, 8):
            y = _by_size(truth, blocks, studies, at_size, generator)
            single = np.zeros(studies, dtype=bool)
            for cells in y:
                found = Simulated(cells, truth.references)
                single |= (np.abs(found.estimate) > found.half_width(ALPHA / len(SIZES))).any(axis=1)
            weights = slope_weights(SIZES, "rows a side")
            scores = np.tensordot(np.array(weights), y, axes=1)
            overall, growth = (
                any_found(Simulated(cells, truth.references)) for cells in (y.mean(axis=0), scores)
            )
            where = f"SD {boots * 100:g}% boots, {at_size * 100:g}% sizes, B = {blocks}"
            yield Case("false verdicts at single sizes", where, 0.05, Rate.of(single))
            yield Case("false verdicts of growth", where, 0.05, Rate.of(growth))
            any_ = overall | single | growth
            yield Case("false verdicts of any kind", where, ANY_FAMILY, Rate.of(any_))


def _by_size(
    truth: Truth, blocks: int, studies: int, at_size: float, generator: np.random.Generator
) -> FloatArray:
    """Cells [size, study, block, column]: sizes share the boot; each adds its own part and iterations."""
    shape = (studies, blocks, truth.columns)
    boots = truth.boots(generator, shape)
    return np.array(
        [
            boots
            + at_size * generator.standard_normal(shape)
            + np.median(normal(generator, (*shape, ITERATIONS)), axis=3)
            for _ in SIZES
        ]
    )


def _sign_flips(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """The sign-flip test of an arm without effect: secondary, but it should rarely dissent."""
    for truth in (STANDARD, HEAVY):
        d = differences(draw(truth, 8, studies, generator).cells, truth.references)[:, :, 0]
        wrong = np.array([sign_flip_p(one) <= LEVEL for one in d.tolist()])
        yield Case("sign-flip test disagrees falsely", f"{truth.name}, B = 8", 0.05, Rate.of(wrong))
