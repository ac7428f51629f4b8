"""Whether the gap grows with size: a slope score per cell, analysed like the cell value.

Never tested as arm x size with iterations as replicates (6 to 21% false), nor on milliseconds, where a
constant percentage grows by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from vnuma.analysis.cells import Boot
from vnuma.analysis.compare import Contrast
from vnuma.analysis.fit import ROUNDING
from vnuma.analysis.instrument_checks import MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.records import worsening
from vnuma.analysis.verdict import Withheld
from vnuma.domain.workloads.metric import Better

Trend = Literal["falls behind", "gains", "undecided", "too few boots"]


@dataclass(frozen=True)
class Growth:
    """How the difference from the reference changes when the work doubles.

    `points` are percentage points per doubling of `doubled`; limits are simultaneous at 95%, None without an
    error. `trend`: whether the arm gets slower or faster with size, or neither is shown.
    """

    arm: str
    points: float | None
    low: float | None
    high: float | None
    adjusted_p: float | None
    trend: Trend
    withheld: Withheld | None
    doubled: str = "rows"


_A_SIDE = " a side"


def doubled_work(size_word: str) -> str:
    """What a doubling counts: `rows` for "rows a side", whose pairs are the square; else the
    size's own unit.
    """
    return size_word.removesuffix(_A_SIDE)


def slope_weights(sizes: Sequence[int], size_word: str) -> tuple[float, ...]:
    """Weights w of the score sum(w ln t): x_c / sum(x_c^2), x = ln(work) centred.

    Work is the size, but its square where the size is given for each side of a join.
    """
    power = 2 if size_word.endswith(_A_SIDE) else 1
    x = [power * math.log(size) for size in sizes]
    mean = math.fsum(x) / len(x)
    square = math.fsum((value - mean) ** 2 for value in x)
    return tuple((value - mean) / square for value in x)


def slope_score(sizes: Sequence[int], size_word: str) -> Callable[[Boot], float]:
    """The score of a cell: its slope of ln(figure) on ln(work)."""
    weights = slope_weights(sizes, size_word)
    return lambda boot: math.fsum(w * math.log(x) for w, x in zip(weights, boot.medians, strict=True))


def growth(
    contrast: Contrast, withheld: Withheld | None, better: Better = "lower", doubled: str = "rows"
) -> Growth:
    """Interpret one contrast of slope scores."""
    scale = 100 * math.log(2)
    estimate, inference = contrast.log_ratio, contrast.inference
    if estimate is None:
        return Growth(contrast.arm, None, None, None, None, "too few boots", withheld, doubled)
    if inference is None:
        return Growth(contrast.arm, scale * estimate, None, None, None, "too few boots", withheld, doubled)
    low, high = estimate - inference.half_width, estimate + inference.half_width
    trend: Trend = _trend(low, high, better)
    if withheld:
        trend = "undecided"
    elif contrast.boots < MIN_BOOTS_FOR_VERDICT:
        trend = "too few boots"
    return Growth(
        contrast.arm,
        scale * estimate,
        scale * low,
        scale * high,
        inference.adjusted_p,
        trend,
        withheld,
        doubled,
    )


def _trend(low: float, high: float, better: Better) -> Trend:
    if low <= ROUNDING and high >= -ROUNDING:
        return "undecided"
    return "falls behind" if worsening(low, better) > 0 else "gains"
