"""Which configurations may be used and lose at most the band: those surely not further behind the best.

Only comparisons with the true best can make the answer wrong, so one-sided bounds over as many comparisons as
there are arms suffice (J. C. Hsu 1984, Annals of Statistics 12:1136).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from vnuma.analysis.compare import Comparison, own_se
from vnuma.analysis.distributions import FloatArray, t_quantile
from vnuma.analysis.instrument_checks import MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.records import worsening
from vnuma.domain.workloads.metric import Better


def near_best(
    comparison: Comparison, candidates: Mapping[str, Sequence[str]], band: float, better: Better = "lower"
) -> tuple[str, ...]:
    """The candidates that are less than `band` (ln scale) behind the best; empty if none surely is.

    `candidates` has each arm's columns: two of the reference with A/A.
    """
    limits = {
        (one, other): _limits(comparison, candidates[one], candidates[other], better)
        for one in candidates
        for other in candidates
        if one != other
    }
    alive = [
        one
        for one in candidates
        if not any(limits[one, other][0] > 0 for other in candidates if other != one)
    ]
    return tuple(one for one in alive if all(limits[one, other][1] < band for other in alive if other != one))


_UNKNOWN = (-math.inf, math.inf)


def _limits(
    comparison: Comparison, one: Sequence[str], other: Sequence[str], better: Better
) -> tuple[float, float]:
    """One-sided bounds of how far `one` is behind `other`; infinite where too few blocks hold both."""
    full = comparison.fit
    if full is None or full.ms is None or not {*one, *other} <= {*full.grid.labels}:
        return _UNKNOWN
    mine, theirs = (np.array([full.grid.column(label) for label in labels]) for labels in (one, other))
    shared = ~np.isnan(mine).all(axis=0) & ~np.isnan(theirs).all(axis=0)
    blocks = int(shared.sum())
    level = _level(comparison, len(full.grid.labels), blocks)
    if level is None:
        return _UNKNOWN
    d = np.nanmean(mine[:, shared], axis=0) - np.nanmean(theirs[:, shared], axis=0)
    if any(comparison.flagged(label) for label in (*one, *other)):
        se, df = own_se(d.tolist()), float(blocks - 1)
    else:
        se = math.sqrt(full.ms * (_share(mine[:, shared]) + _share(theirs[:, shared])) / blocks)
        df = full.df
    width = t_quantile(1 - level, df) * math.hypot(se, math.sqrt(2 * comparison.rounding.variance(full.ms)))
    behind = worsening(float(d.mean()), better)
    return behind - width, behind + width


def _share(cells: FloatArray) -> float:
    """The variance of a candidate's value in a block, in variances of a cell: half with both columns."""
    return float(np.mean(1.0 / (~np.isnan(cells)).sum(axis=0)))


def _level(comparison: Comparison, columns: int, blocks: int) -> float | None:
    """The one-sided level of a single bound; None below the blocks that a verdict needs."""
    if comparison.looks is not None:
        levels = comparison.looks.levels_at(blocks)
        return None if levels is None else levels[1] / 2
    arms = columns - len(comparison.reference)
    return comparison.alpha / arms if blocks >= MIN_BOOTS_FOR_VERDICT and arms else None
