"""The comparison rule on simulated studies: N(0,1) cells without effects, all at once.

An effect shifts the estimate and nothing else, so one set of studies serves every effect and SD.
This is the rule of `compare` in closed form for complete blocks; a test holds them together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vnuma.analysis import dunnett
from vnuma.analysis.distributions import FloatArray, f_quantile, t_quantile, t_two_sided_each
from vnuma.analysis.fit import GATE_LEVEL
from vnuma.analysis.outliers import odd_limit, residual_part

BoolArray = NDArray[np.bool_]

STUDIES = 4000
SEED = 20190601


@dataclass(frozen=True)
class Layout:
    """How many arms are compared, with how many reference columns (2 with A/A), in how many blocks."""

    arms: int
    references: int
    blocks: int


@dataclass(frozen=True, eq=False)
class Simulated:
    """Per study and arm, in the unit of the cells: estimate, both simultaneous half-widths, and that
    of the arm alone (`unadjusted`, 95%).

    `odd_arm[study, block, arm]` and `odd_reference[study, block, column]`: the size of an odd cell's shift
    (`outliers`), 0 of any other. `a_a_p` is the p of each study's A/A check, None with one reference column.
    """

    estimate: FloatArray
    half_width_95: FloatArray
    half_width_90: FloatArray
    unadjusted: FloatArray
    odd_arm: FloatArray
    odd_reference: FloatArray
    a_a_p: FloatArray | None


@lru_cache(maxsize=128)
def simulate_null(layout: Layout, studies: int = STUDIES, seed: int = SEED) -> Simulated:
    """Simulated null studies of that layout; the same seed gives the same studies."""
    k = layout.arms + layout.references
    y = np.random.default_rng((seed, layout.blocks, k)).standard_normal((studies, layout.blocks, k))
    return apply_rule(y, layout.references)


def apply_rule(y: FloatArray, references: int) -> Simulated:
    """The rule on cells y[study, block, column], the reference's columns first."""
    _, blocks, k = y.shape
    arms, df = k - references, (blocks - 1) * (k - 1)
    residual = y - y.mean(axis=2, keepdims=True)
    residual -= residual.mean(axis=1, keepdims=True)
    column_ss = (residual**2).sum(axis=1)
    rss = column_ss.sum(axis=1)
    flagged = _flagged(column_ss, rss, blocks) if arms > 1 else np.ones_like(column_ss, dtype=bool)
    own = flagged[:, references:] | flagged[:, :references].any(axis=1, keepdims=True)
    d = differences(y, references)
    odd = _odd_shifts(residual, df)
    own_se = d.std(axis=1, ddof=1) / np.sqrt(blocks)
    pooled_se = np.sqrt(rss / df * (1 + 1 / references) / blocks)[:, None]

    def half_width(alpha: float) -> FloatArray:
        pooled = dunnett.constant(alpha, arms, df, 1 / (1 + references)) * pooled_se
        paired = t_quantile(1 - alpha / (2 * arms), blocks - 1) * own_se
        return np.asarray(np.where(own, paired, pooled), dtype=np.float64)

    alone = np.where(own, t_quantile(0.975, blocks - 1) * own_se, t_quantile(0.975, df) * pooled_se)
    a_a_p = _a_a_p(y, flagged, rss / df) if references > 1 else None
    return Simulated(
        d.mean(axis=1),
        half_width(0.05),
        half_width(0.10),
        alone,
        odd[:, :, references:],
        odd[:, :, :references],
        a_a_p,
    )


def _odd_shifts(residual: FloatArray, df: int) -> FloatArray:
    """Per cell: |shift| where it is odd, else 0."""
    sizes = np.abs(residual)
    odd = sizes > odd_limit(sizes.reshape(len(sizes), -1), df)[:, None, None]
    return np.asarray(np.where(odd, sizes / residual_part(*residual.shape[1:]), 0.0))


def differences(y: FloatArray, references: int) -> FloatArray:
    """d[study, block, arm]: each arm minus the mean of the reference's columns in its block."""
    return np.asarray(y[:, :, references:] - y[:, :, :references].mean(axis=2, keepdims=True))


def _flagged(column_ss: FloatArray, rss: FloatArray, blocks: int) -> BoolArray:
    """The gate in complete blocks: a column's extra sum of squares is its own times k/(k-1)."""
    k = column_ss.shape[1]
    extra = column_ss * k / (k - 1)
    rest = rss[:, None] - extra
    df1, df2 = blocks - 1, (blocks - 1) * (k - 2)
    return np.asarray((extra / df1) / (rest / df2) > f_quantile(GATE_LEVEL, df1, df2))


def _a_a_p(y: FloatArray, flagged: BoolArray, ms: FloatArray) -> FloatArray:
    """The A/A check: the pooled error, or that of the pairs where either column is flagged."""
    blocks, k = y.shape[1:]
    d = y[:, :, 1] - y[:, :, 0]
    own = flagged[:, :2].any(axis=1)
    se = np.where(own, d.std(axis=1, ddof=1) / np.sqrt(blocks), np.sqrt(2 * ms / blocks))
    df = np.where(own, blocks - 1, (blocks - 1) * (k - 1))
    return t_two_sided_each(d.mean(axis=1) / se, df)
