"""The comparison rule on simulated studies: N(0,1) cells without effects, all at once.

An effect only shifts the estimate, so one set of studies serves every effect and SD. This is the rule of
`compare` in closed form for complete blocks; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from vnuma.analysis import dunnett
from vnuma.analysis.distributions import FloatArray, f_quantile, t_quantile, t_two_sided_each
from vnuma.analysis.fit import APART_LEVEL, GATE_LEVEL
from vnuma.analysis.outliers import odd_limit, residual_part

BoolArray = NDArray[np.bool_]

STUDIES = 4000
SEED = 20190601


@dataclass(frozen=True)
class Layout:
    """The number of compared arms, reference columns (2 with A/A) and blocks."""

    arms: int
    references: int
    blocks: int


@dataclass(frozen=True, eq=False)
class Null:
    """Per simulated study and arm, in units of a cell's SD: estimate and both simultaneous half-widths."""

    estimate: FloatArray
    half_width_95: FloatArray
    half_width_90: FloatArray


@lru_cache(maxsize=128)
def simulate_null(layout: Layout, studies: int = STUDIES, seed: int = SEED) -> Null:
    """Simulated null studies of that layout; the same seed gives the same studies."""
    k = layout.arms + layout.references
    y = np.random.default_rng((seed, layout.blocks, k)).standard_normal((studies, layout.blocks, k))
    found = Simulated(y, layout.references)
    return Null(found.estimate, found.half_width_95, found.half_width_90)


@dataclass(frozen=True, eq=False)
class Simulated:
    """The rule on cells y[study, block, column], the reference's columns first.

    Figures are per study and arm, in the unit of the cells, and computed on first use.
    """

    y: FloatArray
    references: int

    @property
    def df(self) -> int:
        """Of the residual."""
        _, blocks, k = self.y.shape
        return int((blocks - 1) * (k - 1))

    @cached_property
    def _residual(self) -> FloatArray:
        residual = self.y - self.y.mean(axis=2, keepdims=True)
        residual -= residual.mean(axis=1, keepdims=True)
        return np.asarray(residual)

    @cached_property
    def ms(self) -> FloatArray:
        """Per study: the residual mean square."""
        return np.asarray((self._residual**2).sum(axis=(1, 2)) / self.df)

    @cached_property
    def _flagged(self) -> BoolArray:
        """Per study and column: the gate's flag, or every column where a single arm is compared."""
        _, blocks, k = self.y.shape
        if k - self.references == 1:
            return np.ones((len(self.y), k), dtype=bool)
        return _flagged((self._residual**2).sum(axis=1), self.ms * self.df, blocks)

    @cached_property
    def own(self) -> BoolArray:
        """Per study and arm: whether its interval uses its own pairs' error."""
        flagged, r = self._flagged, self.references
        return np.asarray(flagged[:, r:] | flagged[:, :r].any(axis=1, keepdims=True))

    @cached_property
    def _differences(self) -> FloatArray:
        return differences(self.y, self.references)

    @cached_property
    def own_se(self) -> FloatArray:
        """Per study and arm: the standard error from its own pairs."""
        return np.asarray(self._differences.std(axis=1, ddof=1) / np.sqrt(self.y.shape[1]))

    @cached_property
    def _pooled_se(self) -> FloatArray:
        return np.asarray(np.sqrt(self.ms * (1 + 1 / self.references) / self.y.shape[1])[:, None])

    def half_width(self, alpha: float) -> FloatArray:
        """The half-width of intervals that hold for all arms together at 1 - alpha."""
        _, blocks, k = self.y.shape
        arms = k - self.references
        pooled = dunnett.constant(alpha, arms, self.df, 1 / (1 + self.references)) * self._pooled_se
        paired = t_quantile(1 - alpha / (2 * arms), blocks - 1) * self.own_se
        return np.asarray(np.where(self.own, paired, pooled), dtype=np.float64)

    @cached_property
    def estimate(self) -> FloatArray:
        """Mean difference from the reference."""
        return np.asarray(self._differences.mean(axis=1))

    @cached_property
    def half_width_95(self) -> FloatArray:
        """The half-width of the interval that holds for all arms together."""
        return self.half_width(0.05)

    @cached_property
    def half_width_90(self) -> FloatArray:
        """The same at 90%, for equivalence."""
        return self.half_width(0.10)

    @cached_property
    def unadjusted(self) -> FloatArray:
        """The half-width of one arm's own 95% interval."""
        own = t_quantile(0.975, self.y.shape[1] - 1) * self.own_se
        return np.asarray(np.where(self.own, own, t_quantile(0.975, self.df) * self._pooled_se))

    @cached_property
    def _odd(self) -> FloatArray:
        """Per cell: |shift| where it is odd (`outliers`), else 0."""
        sizes = np.abs(self._residual)
        odd = sizes > odd_limit(sizes.reshape(len(sizes), -1), self.df)[:, None, None]
        return np.asarray(np.where(odd, sizes / residual_part(*sizes.shape[1:]), 0.0))

    @property
    def odd_arm(self) -> FloatArray:
        """[study, block, arm]: the size of an odd cell's shift, else 0."""
        return self._odd[:, :, self.references :]

    @property
    def odd_reference(self) -> FloatArray:
        """[study, block, column]: the same of the reference."""
        return self._odd[:, :, : self.references]

    @cached_property
    def a_a_p(self) -> FloatArray | None:
        """Per study: p of the A/A check, by the pairs' own error where either column is flagged."""
        if self.references < 2:
            return None
        blocks = self.y.shape[1]
        d = self.y[:, :, 1] - self.y[:, :, 0]
        own = self._flagged[:, :2].any(axis=1)
        se = np.where(own, d.std(axis=1, ddof=1) / np.sqrt(blocks), np.sqrt(2 * self.ms / blocks))
        df = np.where(own, blocks - 1, self.df)
        return t_two_sided_each(d.mean(axis=1) / se, df)


def differences(y: FloatArray, references: int) -> FloatArray:
    """d[study, block, arm]: each arm minus the mean of the reference's columns in its block."""
    return np.asarray(y[:, :, references:] - y[:, :, :references].mean(axis=2, keepdims=True))


def _flagged(column_ss: FloatArray, rss: FloatArray, blocks: int) -> BoolArray:
    """The gate in complete blocks: a column's extra sum of squares is its own times k/(k-1).

    One column beyond the second point flags them all.
    """
    k = column_ss.shape[1]
    extra = column_ss * k / (k - 1)
    rest = rss[:, None] - extra
    df1, df2 = blocks - 1, (blocks - 1) * (k - 2)
    f = (extra / df1) / (rest / df2)
    apart = (f > f_quantile(APART_LEVEL, df1, df2)).any(axis=1, keepdims=True)
    return np.asarray((f > f_quantile(GATE_LEVEL, df1, df2)) | apart)
