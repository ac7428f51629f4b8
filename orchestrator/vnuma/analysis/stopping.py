"""Rules that end a study, or an arm's part of it, between two blocks.

Decided: an arm leaves once it has a verdict. Its repeated intervals spend the error over all looks: power
family with exponent 1.5 (K. Kim, D. L. DeMets 1987, Biometrika 74:149): by the share t of the largest number
of blocks, total * t^1.5 is spent (K. K. G. Lan, D. L. DeMets 1983, Biometrika 70:659). A look's boundary
follows by the recursion of P. Armitage, C. K. McPherson and B. C. Rowe (1969, J. R. Stat. Soc. A 132:235) for
a Brownian motion. Intervals at these levels hold at every look together, so a run may end whenever it likes
(C. Jennison, B. W. Turnbull 2000, Group Sequential Methods, chapter 9).

Precision: stop when every interval is narrow, whatever it shows. Stopping on the significance of ordinary
intervals instead gives 19 to 24% false findings. Looks start at block 6 (8 with at most 3 columns); the
family-wise error then stays at or below 6.5%."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

import numpy as np

from vnuma.analysis.distributions import FloatArray, normal_cdf, normal_quantile

EXPONENT = 1.5
FIRST_LOOK = 4
"""The first block after which an arm may leave."""

_POINTS = 801
_HALVINGS = 60


@lru_cache(maxsize=256)
def levels(total: float, most_blocks: int) -> Mapping[int, float]:
    """By number of blocks: the two-sided level of a single look there, when looking after each block.

    `total` is the two-sided error of all looks of one arm together. Empty if there are fewer than
    FIRST_LOOK blocks.
    """
    looks = range(FIRST_LOOK, most_blocks + 1)
    times = [block / most_blocks for block in looks]
    bounds = boundaries([total * time**EXPONENT for time in times], times)
    return MappingProxyType(
        {b: float(2 * normal_cdf(np.array(-c))) for b, c in zip(looks, bounds, strict=True)}
    )


def boundaries(spent: Sequence[float], times: Sequence[float]) -> list[float]:
    """Two-sided boundaries of W(t)/√t that are crossed first at each time with the error spent there.

    `spent` is cumulative; `times` increase up to 1.
    """
    found: list[float] = []
    points = density = np.empty(0)
    before = 0.0
    for number, (until, time) in enumerate(zip(spent, times, strict=True)):
        share = until - before
        if number == 0:
            bound = -normal_quantile(share / 2)
            grown = _grid(bound * math.sqrt(time))
            new = _normal(grown, math.sqrt(time))
        else:
            step = math.sqrt(time - times[number - 1])
            bound = _bound(points, density, step, math.sqrt(time), share)
            grown = _grid(bound * math.sqrt(time))
            new = np.asarray(np.trapezoid(_normal(grown[:, None] - points, step) * density, points, axis=1))
        found.append(bound)
        points, density, before = grown, new, until
    return found


def _bound(points: FloatArray, density: FloatArray, step: float, scale: float, share: float) -> float:
    """The boundary that the process crosses for the first time with probability `share`, by bisection."""
    low, high = 0.0, 20.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        edge = middle * scale
        out = normal_cdf((-edge - points) / step) + normal_cdf((points - edge) / step)
        if float(np.trapezoid(out * density, points)) > share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _grid(edge: float) -> FloatArray:
    return np.linspace(-edge, edge, _POINTS)


def _normal(x: FloatArray, sd: float) -> FloatArray:
    return np.asarray(np.exp(-0.5 * (x / sd) ** 2) / (sd * math.sqrt(2 * math.pi)))


@dataclass(frozen=True)
class RepeatedLooks:
    """Looks after each of at most `most_blocks` blocks, at intervals that hold for `arms` at 1 - `alpha`."""

    alpha: float
    arms: int
    most_blocks: int

    def levels_at(self, pairs: int) -> tuple[float, float] | None:
        """The two-sided levels of one arm's 95% and 90% interval there; None before the first look."""
        main = levels(self.alpha / self.arms, self.most_blocks).get(pairs)
        wide = levels(2 * self.alpha / self.arms, self.most_blocks).get(pairs)
        return None if main is None or wide is None else (main, wide)


FIRST_PRECISION_LOOK = 6
FIRST_PRECISION_LOOK_FEW_COLUMNS = 8


@dataclass(frozen=True)
class StopDecision:
    """Whether to stop, and why. `widest` is the widest 95% half-width as a ratio minus 1."""

    stop: bool
    reason: Literal["precise", "cap", "too early", "not yet"]
    blocks: int
    widest: float | None


@dataclass(frozen=True)
class DecidedLook:
    """After a complete block: the verdicts of arms that now leave, by label, and the arms that stay."""

    blocks: int
    leave: Mapping[str, str]
    stay: tuple[str, ...]


def first_look(columns: int) -> int:
    """The first block after which the rule may stop; `columns` counts the A/A column."""
    return FIRST_PRECISION_LOOK_FEW_COLUMNS if columns <= 3 else FIRST_PRECISION_LOOK


def stop_on_precision(
    half_widths: Sequence[float | None], blocks: int, columns: int, target: float, cap: int
) -> StopDecision:
    """Decide after a complete block. Half-widths on the ln scale; `target` is a ratio: 0.01 is 1%.

    A half-width of None (an arm without data) never counts as precise.
    """
    known = [width for width in half_widths if width is not None]
    widest = math.expm1(max(known)) if known and len(known) == len(half_widths) else None
    if blocks >= cap:
        return StopDecision(True, "cap", blocks, widest)
    if blocks < first_look(columns):
        return StopDecision(False, "too early", blocks, widest)
    if widest is not None and widest <= target:
        return StopDecision(True, "precise", blocks, widest)
    return StopDecision(False, "not yet", blocks, widest)
