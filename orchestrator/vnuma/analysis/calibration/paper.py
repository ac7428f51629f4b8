"""For comparison: the 2019 paper's method on the same simulated machines.

One boot per arm, in the order of the table, with three runs of that boot as n = 3. Its tests are Welch's t on
the logarithms, unadjusted; it argues that the arms are in order. B. L. Welch 1947, Biometrika 34:28.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vnuma.analysis.calibration.truths import Studies
from vnuma.analysis.distributions import FloatArray, t_two_sided_each

LEVEL = 0.05


@dataclass(frozen=True)
class PaperRates:
    """Shares of studies without any effect: a false finding per comparison, for some arm, and all
    arms' medians in the order of the table (1 in 120 for five arms by chance)."""

    per_comparison: float
    family: float
    in_order: float


def paper_rates(studies: Studies) -> PaperRates:
    """The paper's method on these studies."""
    runs = studies.paper
    wrong = welch_p(runs[:, 1:], runs[:, :1]) < LEVEL
    steps = np.diff(np.median(runs, axis=2), axis=1)
    return PaperRates(
        float(wrong.mean()), float(wrong.any(axis=1).mean()), float((steps > 0).all(axis=1).mean())
    )


def welch_p(first: FloatArray, second: FloatArray) -> FloatArray:
    """Two-sided p of Welch's t along the last axis."""
    squares = [x.var(axis=-1, ddof=1) / x.shape[-1] for x in (first, second)]
    total = squares[0] + squares[1]
    df = total**2 / sum(
        square**2 / (x.shape[-1] - 1) for square, x in zip(squares, (first, second), strict=True)
    )
    return t_two_sided_each((first.mean(axis=-1) - second.mean(axis=-1)) / np.sqrt(total), df)
