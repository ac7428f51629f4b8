"""The comparison rule on simulated studies: N(0,1) cells without effects, all at once.

An effect only shifts the estimate, so one set of studies serves every effect and SD. This is the rule of
`compare` in closed form for complete blocks; a test compares the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vnuma.analysis.checks import MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.distributions import (
    FloatArray,
    dunnett_constant,
    f_quantile_each,
    t_quantile,
    t_quantile_each,
    t_two_sided_each,
)
from vnuma.analysis.fit import APART_LEVEL, GATE_LEVEL
from vnuma.analysis.outliers import CUT, MAD_TO_SD, odd_limit, residual_part
from vnuma.analysis.stopping import FIRST_LOOK, RepeatedLooks

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
        return _on_pairs(self._flagged, self.references)

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
        pooled = dunnett_constant(alpha, arms, self.df, 1 / (1 + self.references)) * self._pooled_se
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
    """The gate in complete blocks: a column's extra sum of squares is its own times k/(k-1)."""
    k = column_ss.shape[1]
    extra = column_ss * k / (k - 1)
    rest = rss[:, None] - extra
    df1, df2 = np.array(blocks - 1), np.array((blocks - 1) * (k - 2))
    return _gated((extra / df1) / (rest / df2), df1, df2)


def _gated(f: FloatArray, df1: NDArray[np.number], df2: NDArray[np.number]) -> BoolArray:
    """Per study and column: beyond the first point of F; one column beyond the second flags them all."""
    apart = (f > f_quantile_each(APART_LEVEL, df1, df2)).any(axis=1, keepdims=True)
    return np.asarray((f > f_quantile_each(GATE_LEVEL, df1, df2)) | apart)


def _on_pairs(gated: BoolArray, references: int) -> BoolArray:
    """own[study, arm]: a flagged column of the reference flags every arm."""
    return np.asarray(gated[:, references:] | gated[:, :references].any(axis=1, keepdims=True))


Word = Literal["undecided", "equivalent", "slower", "faster"]
WORDS: tuple[Word, ...] = ("undecided", "equivalent", "slower", "faster")
_EQUIVALENT, _SLOWER, _FASTER = 1, 2, 3
_ALPHA = 0.05
_AT_ONCE = 500

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ended:
    """How each study ended: `word[study, arm]` is an index of WORDS, `after[study, arm]` the block of the
    arm's last look, `boots[study]` the number of all boots.
    """

    word: IntArray
    after: IntArray
    boots: IntArray

    def is_word(self, word: Word) -> BoolArray:
        """Per study and arm: whether that is its verdict."""
        return np.asarray(self.word == WORDS.index(word))


def run_decided(y: FloatArray, references: int, band: float) -> Ended:
    """Run the rule on cells y[study, block, column], ln scale, the reference's columns first.

    As many blocks as `y` has may be run; `band` is the band of equivalence on the ln scale.
    """
    parts = [_run(y[at : at + _AT_ONCE], references, band) for at in range(0, len(y), _AT_ONCE)]
    return Ended(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("word", "after", "boots"))
    )


def _run(y: FloatArray, references: int, band: float) -> Ended:
    studies, most, columns = y.shape
    looks = RepeatedLooks(_ALPHA, columns - references, most)
    word = np.zeros((studies, columns - references), dtype=np.int64)
    after = np.full_like(word, most)
    for block in range(FIRST_LOOK, most + 1):
        going = np.flatnonzero((word == 0).any(axis=1))
        if not len(going):
            break
        ran = _ran(after[going], block, references)
        found = _look(y[going, :block], ran, references, looks, band)
        leaves = (word[going] == 0) & (found > 0)
        word[going] = np.where(leaves, found, word[going])
        after[going] = np.where(leaves, block, after[going])
    own = np.where(word > 0, after, most)
    return Ended(word, after, np.asarray(own.sum(axis=1) + references * own.max(axis=1)))


def _ran(after: IntArray, block: int, references: int) -> BoolArray:
    """ran[study, block, column]: which cells were run so far."""
    last = np.concatenate([np.full((len(after), references), block), after], axis=1)
    return np.asarray(np.arange(1, block + 1)[None, :, None] <= last[:, None, :])


def _look(y: FloatArray, ran: BoolArray, references: int, looks: RepeatedLooks, band: float) -> IntArray:
    """The word of each arm as if it were open."""
    block = y.shape[1]
    levels = looks.levels_at(block)
    assert levels is not None
    fit = _Fit(y, ran)
    d = differences(y, references)
    estimate = d.mean(axis=1)
    own = _own(fit, references)
    pooled = np.sqrt(fit.rss / fit.df * (1 + 1 / references) / block)[:, None]
    se = np.where(own, d.std(axis=1, ddof=1) / math.sqrt(block), pooled)
    df = np.where(own, block - 1, fit.df[:, None])
    main, wide = (t_quantile_each(1 - level / 2, df) * se for level in levels)
    inside = (np.abs(estimate) + wide < band) & (block >= MIN_BOOTS_FOR_VERDICT)
    far = fit.odd(band)
    odd = far[:, :, references:].sum(axis=1) + far[:, :, :references].sum(axis=(1, 2))[:, None]
    word = np.where(estimate - main > 0, _SLOWER, np.where(estimate + main < 0, _FASTER, 0))
    return np.where(inside & (odd * 10 <= block), _EQUIVALENT, word)


class _Fit:
    """Column + block by least squares where some columns end early; per study."""

    def __init__(self, y: FloatArray, ran: BoolArray) -> None:
        self.y, self.ran = y, ran
        self.residual = _residual(y, ran)
        self.rss: FloatArray = np.asarray((self.residual**2).sum(axis=(1, 2)))
        self.df: FloatArray = _df(ran)

    def odd(self, band: float) -> BoolArray:
        """odd[study, block, column]: odd cells (`outliers`) that are further away than the band."""
        sizes = np.where(self.ran, np.abs(self.residual), np.nan)
        cells = self.ran.sum(axis=(1, 2))
        limit = (
            CUT * MAD_TO_SD * np.nanmedian(sizes.reshape(len(sizes), -1), axis=1) * np.sqrt(cells / self.df)
        )
        away = np.nan_to_num(sizes)
        far = away / residual_part(*self.y.shape[1:]) > band
        return np.asarray((away > limit[:, None, None]) & far)

    def gate(self, column: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """F of one column's variance against the others', with its degrees of freedom."""
        rest = np.delete(self.y, column, axis=2), np.delete(self.ran, column, axis=2)
        rss, df = (_residual(*rest) ** 2).sum(axis=(1, 2)), _df(rest[1])
        return (self.rss - rss) / (self.df - df) / (rss / df), self.df - df, df


def _df(ran: BoolArray) -> FloatArray:
    return np.asarray(ran.sum(axis=(1, 2)) - ran.shape[1] - (ran.shape[2] - 1), dtype=np.float64)


def _residual(y: FloatArray, ran: BoolArray) -> FloatArray:
    """Residuals, 0 where there is no cell; blocks are eliminated as in `fit`."""
    n = ran.astype(np.float64)
    each = n.sum(axis=2)
    centred = np.where(ran, y - (y * n).sum(axis=2, keepdims=True) / each[..., None], 0.0)
    shared = np.einsum("sbi,sbj->sij", n, n / each[..., None])
    columns = y.shape[2]
    information = np.eye(columns) * n.sum(axis=1)[:, None, :] - shared + 1.0 / columns
    effects = np.linalg.solve(information, centred.sum(axis=1)[..., None])[..., 0]
    left = np.where(ran, y - effects[:, None, :], 0.0)
    return np.asarray(np.where(ran, left - left.sum(axis=2, keepdims=True) / each[..., None], 0.0))


def _own(fit: _Fit, references: int) -> BoolArray:
    """own[study, arm]: whether its interval rests on its own pairs."""
    studies, _, columns = fit.y.shape
    if columns - references == 1:
        return np.ones((studies, 1), dtype=bool)
    each = [np.array(figures).T for figures in zip(*map(fit.gate, range(columns)), strict=True)]
    return _on_pairs(_gated(*each), references)
