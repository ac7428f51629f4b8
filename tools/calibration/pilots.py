"""Plans from a pilot of three blocks: how many really reach their power, for several distributions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tools.calibration.case import Case, quiet
from tools.calibration.promised_power import kept_pilots
from tools.calibration.truths import SD, Truth, heavy, lognormal, normal
from vnuma.analysis.distributions import FloatArray


def wild(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Student's t with 2 degrees of freedom, whose SD is infinite; half the standard SD as its scale."""
    return np.asarray(SD / 2 * generator.standard_t(2, shape))


def rarely_slow(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Normal, and one boot in twenty 3% slow."""
    return normal(generator, shape) + 0.03 * (generator.random(shape) < 0.05)


SHAPES = (
    Truth("t with 3 df", boots=heavy, iterations=quiet),
    Truth("two arms' SD x 2", iterations=quiet, spread=(1, 1, 1, 1, 2, 2)),
    Truth("5% slow boots", boots=rarely_slow, iterations=quiet),
    Truth("lognormal", boots=lognormal, iterations=quiet),
    Truth("t with 2 df", boots=wild, iterations=quiet),
)


FAR_TAILS = ("lognormal", "t with 2 df")
"""A bound from 18 cells cannot know their tails, as docs and `vnuma power --pilot` state."""


def pilot_cases(pilots: int, generator: np.random.Generator) -> Iterator[Case]:
    """Distributions other than normal, unknowable from a pilot of 18 cells."""
    for truth in SHAPES:
        rate = kept_pilots(truth, generator, pilots)
        told = truth.name in FAR_TAILS
        what, bound = ("far tails: reported, not promised", 0.60) if told else ("other shapes", 0.75)
        yield Case(f"plans from a pilot, {what}", truth.name, bound, rate, at_most=False)
