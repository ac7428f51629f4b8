"""One arm, or some, that scatter more than the others: what this does to the clean arms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tools.calibration.case import Case
from tools.calibration.error_rates import (
    MARGIN,
    Rate,
    any_found,
    outcome,
    some_arm,
    within_band,
)
from tools.calibration.truths import STANDARD, Studies, draw
from vnuma.analysis.simulate import Simulated

NORMAL, LOST = 0.96, 0.05
"""How often a clean arm is called equivalent at 12 blocks without noise; what one noisy arm may cost."""

_CASES = (
    (1, 3.0, 8, 0.60),
    (1, 3.0, 12, NORMAL - LOST),
    (1, 6.0, 8, 0.58),
    (1, 6.0, 12, NORMAL - LOST),
    (2, 3.0, 8, 0.50),
    (2, 3.0, 12, 0.88),
    (3, 3.0, 8, 0.15),
    (3, 3.0, 12, 0.30),
)
"""Noisy arms, the factor of their SD, blocks, and how often a clean arm must be called equivalent."""


def noisy_cases(studies: int, generator: np.random.Generator) -> Iterator[Case]:
    """One, two and three arms with three or six times the SD, a slow state, a single slow boot."""
    for noisy, factor, blocks, bound in _CASES:
        clean = STANDARD.arms - noisy
        truth = replace(STANDARD, spread=(*[1.0] * (STANDARD.references + clean), *[factor] * noisy))
        where = f"{noisy} of {STANDARD.arms} arms SD x {factor:g}, B = {blocks}"
        found = outcome(draw(truth, blocks, studies, generator))
        yield from _clean(found, clean, where, bound)
        wrong = any_found(found)
        yield Case("family-wise error, noisy arms", where, 0.06, Rate.of(wrong))
    for name, blocks, change, bound in (
        ("12% of one arm's boots 11% slower", 12, _slow_state, NORMAL - LOST),
        ("one boot 20% slower", 8, _slow_boot, 0.30),
    ):
        drawn = draw(STANDARD, blocks, studies, generator)
        change(drawn, generator)
        yield from _clean(outcome(drawn), STANDARD.arms - 1, f"{name}, B = {blocks}", bound)


def _clean(found: Simulated, clean: int, where: str, bound: float) -> Iterator[Case]:
    """The arms without noise: called equivalent as often as if there were none, and not if they differ."""
    called = within_band(found, 0.0, MARGIN)[:, :clean]
    yield Case(f"clean arms called equivalent, {where}", where, bound, Rate.of(called), at_most=False)
    false = some_arm(within_band(found, math.log1p(MARGIN), MARGIN)[:, :clean])
    yield Case("clean arms called equivalent at 1%", where, 0.05, Rate.of(false))


def _slow_state(drawn: Studies, generator: np.random.Generator) -> None:
    slow = generator.random(drawn.times.shape[:2]) < 0.12
    drawn.times[:, :, -1] += math.log1p(0.11) * slow[:, :, None]


def _slow_boot(drawn: Studies, generator: np.random.Generator) -> None:
    block = generator.integers(drawn.times.shape[1], size=len(drawn.times))
    drawn.times[np.arange(len(block)), block, -1] += math.log1p(0.20)
