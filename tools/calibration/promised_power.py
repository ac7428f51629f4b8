"""Whether the promised power is reached, also by plans from a pilot, and whether stopping is honest."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tools.calibration import truths
from tools.calibration.error_rates import Rate, any_found, found_slower, outcome
from vnuma.analysis.planning import blocks_for, detectable_effect, ratio_needed
from vnuma.analysis.simulate import Layout, Simulated
from vnuma.analysis.stopping import first_look
from vnuma.analysis.variance import ROBUST_QUANTILE, cell_sd, pilot_upper

PROMISE = 0.80
CAPS = (8, 12, 24)
SIGMA = cell_sd(truths.SD, truths.SD, truths.ITERATIONS)
"""The SD of a cell in the standard truth."""

STOPPING: tuple[tuple[truths.Truth, float], ...] = (
    (truths.STANDARD, 0.01),
    (truths.STANDARD, 0.0075),
    (truths.STANDARD, 0.005),
    (truths.NOISY_ARM, 0.01),
    (replace(truths.STANDARD, name="normal, one arm", arms=1), 0.005),
    (replace(truths.STANDARD, name="one arm, its SD x 2", arms=1, spread=(1, 1, 2)), 0.0075),
)
"""Truths and declared half-widths for which stopping is simulated."""


_BLOCKS = 3
PILOTS = 2000
_EFFECT = 0.01
_STUDIES = 1000
"""For the true power of each planned number of blocks; an arm each counts."""


@dataclass(frozen=True)
class Promise:
    """The effect that `power` calls likely detected with these blocks, and how often it is."""

    blocks: int
    effect: float
    power: Rate


@dataclass(frozen=True)
class Stopping:
    """Stopping at half-width `target`: family-wise error for each of CAPS, and blocks run (cap 24)."""

    truth: truths.Truth
    target: float
    first: int
    family: tuple[Rate, ...]
    mean_blocks: float


def promised_power(blocks: int, studies: int, generator: np.random.Generator) -> Promise:
    """With the SD known: the detectable effect is added to new studies."""
    effect = detectable_effect(SIGMA, Layout(truths.STANDARD.arms, truths.STANDARD.references, blocks))
    result = outcome(truths.draw(truths.STANDARD, blocks, studies, generator))
    return Promise(blocks, effect, Rate.of(found_slower(result, math.log1p(effect))))


def stopping(truth: truths.Truth, target: float, studies: int, generator: np.random.Generator) -> Stopping:
    """Look after each block from the first allowed one; stop when every 95% half-width is at most
    `target`.
    """
    y = truths.draw(truth, max(CAPS), studies, generator).cells
    first = first_look(truth.columns)
    stopped_at = np.full(studies, max(CAPS))
    wrong = np.zeros((max(CAPS) + 1, studies), dtype=bool)
    going = np.ones(studies, dtype=bool)
    for blocks in range(first, max(CAPS) + 1):
        result = Simulated(y[going, :blocks], truth.references)
        wrong[blocks, going] = any_found(result)
        stops = np.expm1(result.half_width_95.max(axis=1)) <= target
        stopped_at[np.flatnonzero(going)[stops]] = blocks
        going[np.flatnonzero(going)[stops]] = False
        if not going.any():
            break
    each = np.arange(studies)
    family = tuple(Rate.of(wrong[np.minimum(stopped_at, cap), each]) for cap in CAPS)
    return Stopping(truth, target, first, family, float(stopped_at.mean()))


def kept_pilots(truth: truths.Truth, generator: np.random.Generator, pilots: int = PILOTS) -> Rate:
    """Plans with the pilot's robust upper bound that truly reach 80% power for 1%."""
    y = truths.draw(truth, _BLOCKS, pilots, generator).cells
    residual = y - y.mean(axis=2, keepdims=True)
    residual -= residual.mean(axis=1, keepdims=True)
    df = (_BLOCKS - 1) * (truth.columns - 1)
    planned = [
        blocks_for(
            ratio_needed,
            _EFFECT,
            math.sqrt(pilot_upper(float(rss) / df, df, ROBUST_QUANTILE)),
            truth.arms,
            truth.references,
        )
        for rss in (residual**2).sum(axis=(1, 2))
    ]
    reaches = {
        blocks: blocks is not None and _true_power(truth, blocks, generator) >= PROMISE
        for blocks in sorted(set(planned), key=lambda blocks: blocks or 0)
    }
    return Rate.of(np.array([reaches[blocks] for blocks in planned]))


def _true_power(truth: truths.Truth, blocks: int, generator: np.random.Generator) -> float:
    """On studies other than those that the plan was made with."""
    found = outcome(truths.draw(truth, blocks, _STUDIES, generator))
    return float(found_slower(found, math.log1p(_EFFECT)).mean())
