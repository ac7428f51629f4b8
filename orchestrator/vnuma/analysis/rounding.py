"""The error of a coarse clock: its step is estimated from the data, and its error is added.

A column whose cells scatter less than a step is rounded the same way in every block, which more blocks do not
average out. Scatter of half a step or more does (dither).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

import numpy as np

from vnuma.analysis.distributions import FloatArray

ROUNDING = 1e-12
"""Smaller residuals of logarithms are rounding of double arithmetic, not noise."""

SHARE_OF_MARGIN = 1 / 3
"""With a coarser step than this share of the equivalence band, equivalence cannot be shown."""

_TERMS = 8
_TINY = 1e-9


@dataclass(frozen=True)
class Rounding:
    """Steps of the sizes relative to their figures, times the sizes' weights.

    `unknown`: all figures of some size are equal, so that nothing shows their step.
    """

    steps: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    unknown: bool = False

    @property
    def step(self) -> float:
        """The coarseness of the weighted figure, on the ln scale; infinite if unknown."""
        return math.inf if self.unknown else math.fsum(self.steps)

    def variance(self, ms: float) -> float:
        """The error variance that remains in the mean of a column whose cells have the variance `ms`."""
        if not any(self.steps):
            return 0.0
        # Boots move all sizes alike: fully in a mean of sizes, not at all in a slope over them.
        total = math.fsum(self.weights) ** 2
        whole = total if total > ROUNDING else math.fsum(w * w for w in self.weights)
        return math.fsum(
            staying(step, ms * w * w / whole) for step, w in zip(self.steps, self.weights, strict=True)
        )


NO_ROUNDING = Rounding()


@dataclass(frozen=True)
class ClockStep:
    """The step of one size's figures on the ln scale; 0 without figures. `alike`: no variation was seen."""

    relative: float
    alike: bool = False


def clock_steps(times: Iterable[Sequence[float]], *, printed: bool = False) -> tuple[ClockStep, ...]:
    """From all figures of each size. `printed`: equal figures have the step of their last digit."""
    return tuple(_clock_step(values, printed=printed) if values else ClockStep(0.0) for values in times)


def _clock_step(values: Sequence[float], *, printed: bool) -> ClockStep:
    distinct = np.unique(values)
    if len(distinct) > 1:
        return ClockStep(relative_step(distinct))
    return ClockStep(last_digit(values[0]) / values[0] if printed else 1.0, alike=True)


def rounding_of(steps: Iterable[ClockStep], weights: Sequence[float]) -> Rounding:
    """The steps of the sizes, weighted."""
    own = [(step, abs(w)) for step, w in zip(steps, weights, strict=True)]
    unknown = any(w and step.alike for step, w in own)
    return Rounding(tuple(step.relative * w for step, w in own), tuple(map(float, weights)), unknown)


def last_digit(figure: float) -> float:
    """What one unit of a figure's last digit is worth: 0.01 for 5000.12, 1 for 5000."""
    exponent = Decimal(repr(figure)).normalize().as_tuple().exponent
    return 10.0 ** min(int(exponent), 0)


def step_of(values: Sequence[float]) -> float:
    """The smallest difference between distinct figures; the figure itself if all are equal."""
    distinct = sorted(set(values))
    gaps = [high - low for low, high in pairwise(distinct) if high - low > _TINY * distinct[-1]]
    return min(gaps, default=distinct[-1])


def relative_step(distinct: FloatArray) -> float:
    """The smallest distance on the ln scale between figures, ascending and distinct; 1 if none differ.

    A time and its reciprocal, a throughput, have the same one, so both get the same verdict. Iterations of 0
    have no logarithm and are left out; their boot has one if its median is above 0.
    """
    distinct = distinct[distinct > 0]
    ratios = distinct[1:] / distinct[:-1]
    ratios = ratios[ratios > 1 + _TINY]
    return math.log(ratios.min()) if len(ratios) else 1.0


def staying(step: float, ms: float) -> float:
    """The rounding error's variance, averaged over a mean's position between two steps.

    step^2/12 without any scatter; with normal scatter s each wave k of the error shrinks by exp(-2 (pi k s /
    step)^2). `ms` includes the rounding's own step^2/12.
    """
    if step <= 0:
        return 0.0
    scatter = max(0.0, ms - step**2 / 12) / step**2
    return step**2 / (2 * math.pi**2) * _waves(4 * math.pi**2 * scatter)


def _waves(a: float) -> float:
    """Sum of exp(-a k^2) / k^2 over all k from 1; for small a by Poisson's formula, to 1e-4 of a term."""
    if a < 1:
        return math.pi**2 / 6 - math.sqrt(math.pi * a) + a / 2
    return math.fsum(math.exp(-a * k * k) / k**2 for k in range(1, _TERMS + 1))
