"""The rule by which arms leave (`stop: decided`) on simulated studies, all at once.

The rule of `compare`, `decide` and `decided_look` in vectorised form, for studies in which no cell is missing
but those of arms that left; a test compares the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vnuma.analysis.distributions import FloatArray, f_quantile_each, t_quantile_each
from vnuma.analysis.fit import APART_LEVEL, GATE_LEVEL
from vnuma.analysis.instrument_checks import MIN_BOOTS_FOR_VERDICT
from vnuma.analysis.outliers import CUT, MAD_TO_SD, residual_part
from vnuma.analysis.simulate import BoolArray, differences
from vnuma.analysis.spending import FIRST_LOOK, RepeatedLooks

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
    flagged = np.empty((studies, columns), dtype=bool)
    apart = np.zeros(studies, dtype=bool)
    for column in range(columns):
        f, df1, df2 = fit.gate(column)
        flagged[:, column] = f > f_quantile_each(GATE_LEVEL, df1, df2)
        apart |= f > f_quantile_each(APART_LEVEL, df1, df2)
    everyone = apart | flagged[:, :references].any(axis=1)
    return np.asarray(flagged[:, references:] | everyone[:, None])
