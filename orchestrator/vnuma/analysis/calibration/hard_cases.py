"""What real runs add to the standard truths: cells without a value, and more as they are found.

Where the product's closed form does not reach, studies go through `compare` and `decide` one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vnuma.analysis.calibration.measure import MARGIN, Rate
from vnuma.analysis.calibration.truths import STANDARD, Truth, draw
from vnuma.analysis.cells import Grid
from vnuma.analysis.checks import BOOTS_FOR_WORDS
from vnuma.analysis.compare import Comparison, compare
from vnuma.analysis.distributions import FloatArray
from vnuma.analysis.verdict import Rules, Word, decide

ALPHA = 0.05
CLEAR_EFFECT = math.log(1.03)
ONE_BY_ONE = 10
"""One study in this many goes through the product's own functions: they take milliseconds each."""


@dataclass(frozen=True)
class Case:
    """One rate in one case. `bound` holds for all cases of a target: at most, or at least, that share."""

    target: str
    where: str
    bound: float
    rate: Rate
    at_most: bool = True


def hard_cases(studies: int, generator: np.random.Generator) -> tuple[Case, ...]:
    """Every case, in the order of the table."""
    return tuple(_gaps(max(20, studies // ONE_BY_ONE), generator))


def _gaps(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """The A/A column has few cells, or a tenth of all cells is missing."""
    for held in (1, 2):
        y = draw(STANDARD, 8, studies, generator).cells
        y[:, held:, 1] = np.nan
        y[:, :, STANDARD.references :] += CLEAR_EFFECT
        slower = [[word is Word.SLOWER for word in _words(one)] for one in _each(y, STANDARD)]
        where = f"A/A valid in {held} of 8 blocks, arms 3% slower"
        yield Case("right verdicts with gaps", where, 0.98, Rate.of(np.array(slower)), at_most=False)
    for blocks in (6, 8):
        y = draw(STANDARD, blocks, studies, generator).cells
        y[generator.random(y.shape) < 0.10] = np.nan
        found = list(_each(y, STANDARD))
        wrong = np.array([_false(one) for one in found])
        thin = np.array([[_thin(one, arm) for arm in range(STANDARD.arms)] for one in found])
        where = f"10% of the cells missing, B = {blocks}"
        yield Case("family-wise error with gaps", where, 0.05, Rate.of(wrong))
        yield Case(f"verdicts on fewer than {BOOTS_FOR_WORDS} pairs", where, 0.0, Rate.of(thin))


def _each(y: FloatArray, truth: Truth) -> Iterator[Comparison]:
    """The product's comparison of each study's cells, NaN where one is missing."""
    labels = tuple(map(str, range(truth.columns)))
    arms = {label: label for label in labels[truth.references :]}
    for cells in y:
        rows = np.flatnonzero(~np.isnan(cells).all(axis=1))
        present = Grid(labels, tuple(map(int, rows)), cells[rows]).only(
            label for c, label in enumerate(labels) if not np.isnan(cells[:, c]).all()
        )
        yield compare(present, labels[: truth.references], arms, ALPHA)


def _words(found: Comparison) -> list[Word]:
    rules = Rules(MARGIN, None, control_failed=False)
    return [decide(item, rules, ALPHA).word for item in found.contrasts]


def _false(found: Comparison) -> bool:
    """Does the interval of some arm with a verdict exclude the truth, which is no effect?"""
    return any(
        word is not Word.TOO_FEW and item.inference is not None and not item.inference.interval.contains(1.0)
        for word, item in zip(_words(found), found.contrasts, strict=True)
    )


def _thin(found: Comparison, arm: int) -> bool:
    return _words(found)[arm] is not Word.TOO_FEW and len(found.contrasts[arm].differences) < BOOTS_FOR_WORDS
