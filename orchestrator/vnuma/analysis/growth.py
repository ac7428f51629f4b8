"""Does the gap grow with size? A slope score per cell, analysed exactly like the cell value.

Never tested as arm x size with iterations as replicates (6 to 21% false), nor on milliseconds:
a constant percentage grows in ms by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from vnuma.analysis.cells import Boot
from vnuma.analysis.checks import BOOTS_FOR_WORDS
from vnuma.analysis.compare import Contrast
from vnuma.analysis.verdict import Withheld

Trend = Literal["rises", "falls", "undecided", "too few boots"]


@dataclass(frozen=True)
class Growth:
    """How the difference from the reference changes when the number of joined rows doubles.

    `points` are percentage points per doubling of rows; limits are simultaneous at 95%, None
    without an error. `trend`: the difference rises (the arm falls behind), falls, or neither is shown.
    """

    arm: str
    points: float | None
    low: float | None
    high: float | None
    adjusted_p: float | None
    trend: Trend
    withheld: Withheld | None


def slope_weights(sizes: Sequence[int]) -> tuple[float, ...]:
    """Weights w of the score sum(w ln t): x_c / sum(x_c^2), x = ln(rows) centred, rows = size^2."""
    x = [2 * math.log(size) for size in sizes]
    mean = math.fsum(x) / len(x)
    square = math.fsum((value - mean) ** 2 for value in x)
    return tuple((value - mean) / square for value in x)


def slope_score(sizes: Sequence[int]) -> Callable[[Boot], float]:
    """The score of a cell: its slope of ln(time) on ln(rows)."""
    weights = slope_weights(sizes)
    return lambda boot: math.fsum(w * math.log(ms) for w, ms in zip(weights, boot.medians_ms, strict=True))


def growth(contrast: Contrast, withheld: Withheld | None) -> Growth:
    """Read one contrast of slope scores."""
    scale = 100 * math.log(2)
    estimate, inference = contrast.log_ratio, contrast.inference
    if estimate is None:
        return Growth(contrast.arm, None, None, None, None, "too few boots", withheld)
    if inference is None:
        return Growth(contrast.arm, scale * estimate, None, None, None, "too few boots", withheld)
    low, high = estimate - inference.half_width, estimate + inference.half_width
    trend: Trend = "rises" if low > 0 else "falls" if high < 0 else "undecided"
    if withheld:
        trend = "undecided"
    elif contrast.boots < BOOTS_FOR_WORDS:
        trend = "too few boots"
    return Growth(
        contrast.arm, scale * estimate, scale * low, scale * high, inference.adjusted_p, trend, withheld
    )
