"""The fit behind every comparison: ln(time) = column + block, with or without missing cells.

Complete blocks: residual R = Y - block mean - column mean + grand mean, df = (B-1)(k-1). With cells
missing the same least squares is solved by eliminating the blocks (intrablock analysis; F. Yates
1936, "Incomplete randomized blocks", Annals of Eugenics 7): C = diag(n) - N'diag(1/m)N, effects =
pinv(C) Q, and a contrast w has variance sigma^2 w'pinv(C)w. One path, so both cases are one formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vnuma.analysis.cells import Boot, Grid
from vnuma.analysis.distributions import FloatArray, f_quantile
from vnuma.analysis.rounding import ROUNDING

GATE_LEVEL = 0.90
"""A column beyond this point of F is judged by its own error."""
APART_LEVEL = 0.99
"""A column beyond this one blurs every other: then no arm uses the pooled error."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Least squares of arm + block. `effects` sum to zero; `residuals` are NaN where a cell is missing.

    With declared covariates, `grid` has the values without their effect, and `places` its cost.
    """

    grid: Grid
    effects: FloatArray
    block_effects: FloatArray
    residuals: FloatArray
    variance: FloatArray
    rss: float
    df: int
    places: Places | None = None

    @property
    def ms(self) -> float | None:
        """Residual mean square: the variance of one cell; None without degrees of freedom."""
        return self.rss / self.df if self.df > 0 else None

    def contrast(self, weights: Mapping[str, float]) -> tuple[float, float]:
        """A weighted sum of columns: its estimate, and its variance divided by the residual variance."""
        w = np.array([weights.get(label, 0.0) for label in self.grid.labels])
        variance = float(w @ self.variance @ w)
        if self.places is not None:
            variance += self.places.uneven(w @ self.places.effects)
        return float(w @ self.effects), variance

    @property
    def unadjusted(self) -> Fit:
        """The same cells without removing the covariates' effect."""
        return self if self.places is None else fit(self.places.raw.at(None))

    @property
    def own_scale(self) -> float:
        """The factor of an arm's own variance, since its pairs were adjusted for covariates as well."""
        return 1.0 if self.places is None or self.df < 1 else (self.df + self.places.rank) / self.df


@dataclass(frozen=True, eq=False)
class Places:
    """Covariates of a fit: the cells as they were, each column's mean covariates (`effects`), the inverse of
    the covariates' own sums of squares, and how many degrees of freedom they take (`rank`)."""

    raw: Grid
    effects: FloatArray
    information: FloatArray
    rank: int

    def uneven(self, difference: FloatArray) -> float:
        """The variance that a contrast adds for unequal covariate means, in variances of a cell."""
        return float(difference @ self.information @ difference)


@dataclass(frozen=True)
class GateFlag:
    """Whether one column varies more than the others. `flagged`: its pooled error is not used. `apart`: so
    much more that nobody's is.

    `f` and `critical` are None where the test has nothing to divide by; the flag is then set.
    """

    label: str
    f: float | None
    critical: float | None
    flagged: bool
    apart: bool = False

    @property
    def testable(self) -> bool:
        """Whether the column has enough cells for the test."""
        return self.critical is not None


def fit(grid: Grid) -> Fit:
    """Fit columns, blocks and declared covariates by least squares. The grid must be connected."""
    return _plain(grid) if grid.x is None else _with_covariates(grid, grid.x)


def _with_covariates(grid: Grid, x: FloatArray) -> Fit:
    """Regress the values on the covariates, after removing columns and blocks from both."""
    present = ~np.isnan(grid.y)
    per_block = present.sum(axis=1)[:, None, None]
    held = np.where(present[..., None], x, 0.0)
    left = np.where(present[..., None], held - held.sum(axis=1, keepdims=True) / per_block, 0.0)
    effects = _variance(present.shape, present.tobytes()) @ left.sum(axis=0)
    left = np.where(present[..., None], left - effects, 0.0)
    left -= np.where(present[..., None], left.sum(axis=1, keepdims=True) / per_block, 0.0)
    cells = left[present]
    values, vectors = np.linalg.eigh(cells.T @ cells)
    kept = values > 1e-9 * max(1.0, float(values.sum()))
    information = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    slopes = information @ cells.T @ (grid.y[present] - grid.y[present].mean())
    found = _plain(grid.of(grid.y - held @ slopes))
    rank = int(kept.sum())
    return replace(found, df=found.df - rank, places=Places(grid, effects, information, rank))


def _plain(grid: Grid) -> Fit:
    """Arm + block alone."""
    present = ~np.isnan(grid.y)
    variance = _variance(present.shape, present.tobytes())
    per_block = present.sum(axis=1)
    held = np.where(present, grid.y, 0.0)
    effects = variance @ _totals(held, present, per_block)
    rest = held - effects
    block_effects = np.where(present, rest, 0.0).sum(axis=1) / per_block
    left = np.where(present, rest - block_effects[:, None], 0.0)
    rss = 0.0 if np.abs(left).max() < ROUNDING else float((left**2).sum())
    df = int(per_block.sum()) - len(grid.blocks) - (len(grid.labels) - 1)
    return Fit(grid, effects, block_effects, np.where(present, left, np.nan), variance, rss, df)


def against(full: Fit, label: str, reference: Sequence[str]) -> tuple[float, float]:
    """A column minus the reference, whose columns are one arm with equally weighted cells.

    Returns the estimate and its variance divided by that of a cell. In complete blocks this is the mean of
    the reference's columns; where one has gaps, the other fills in.
    """
    estimate, variance = _against(full.grid, label, reference)
    return estimate, variance + uneven(full, label, reference)


def uneven(full: Fit, label: str, reference: Sequence[str]) -> float:
    """The variance that such a contrast adds for its columns' unequal covariates, in variances of a cell."""
    if full.places is None or full.places.raw.x is None:
        return 0.0
    raw, x = full.places.raw, full.places.raw.x
    differ = [_against(raw.of(x[..., term]), label, reference)[0] for term in range(x.shape[2])]
    return full.places.uneven(np.array(differ))


def _against(grid: Grid, label: str, reference: Sequence[str]) -> tuple[float, float]:
    arms, totals, variance = _merged(grid, tuple(reference))
    w = np.array([(arm == label) - float(arm == reference[0]) for arm in arms])
    half = w @ variance
    return float(half @ totals), float(half @ w)


@lru_cache(maxsize=4)
def _merged(grid: Grid, reference: tuple[str, ...]) -> tuple[list[str], FloatArray, FloatArray]:
    """The columns with the reference's as one, their totals and pinv(C): the same for all arms of a grid."""
    arms = [name for name in grid.labels if name not in reference[1:]]
    member = np.array(
        [[arm == (reference[0] if name in reference else name) for arm in arms] for name in grid.labels],
        dtype=np.int64,
    )
    present = ~np.isnan(grid.y)
    counts = np.ascontiguousarray(present @ member)
    totals = _totals(np.where(present, grid.y, 0.0), present, present.sum(axis=1))
    return arms, totals @ member, _variance(counts.shape, counts.astype(np.uint8).tobytes())


def _totals(held: FloatArray, present: NDArray[np.bool_], per_block: NDArray[np.intp]) -> FloatArray:
    """Sum of each column's cells, each less the mean of its block; `held` is 0 where a cell is missing."""
    means = held.sum(axis=1, keepdims=True) / per_block[:, None]
    return np.asarray(np.where(present, held - means, 0.0).sum(axis=0), dtype=np.float64)


@lru_cache(maxsize=256)
def _variance(shape: tuple[int, int], pattern: bytes) -> FloatArray:
    """pinv(C) from the pattern of cells; cached, since most fits of a run share it."""
    n = np.frombuffer(pattern, dtype=np.uint8).reshape(shape).astype(np.float64)
    information = np.diag(n.sum(axis=0)) - n.T @ (n / n.sum(axis=1)[:, None])
    return np.asarray(np.linalg.pinv(information, hermitian=True), dtype=np.float64)


def connected(grid: Grid, start: str) -> Grid:
    """The columns that share blocks with `start`, directly or through others, and can be compared."""
    present = ~np.isnan(grid.y)
    if present.all():
        return grid
    reached = {grid.labels.index(start)}
    while True:
        rows = present[:, sorted(reached)].any(axis=1)
        grown = {int(i) for i in np.flatnonzero(present[rows].any(axis=0))}
        if len(grown) == len(grid.labels):
            return grid
        if grown == reached:
            return grid.only(grid.labels[i] for i in sorted(reached))
        reached = grown


def gate(full: Fit) -> tuple[GateFlag, ...]:
    """F test of each column's variance against the others', at 10% and 1%; empty for fewer than 3 columns.

    F = [(RSS - RSS_j) / (df - df_j)] / [RSS_j / df_j], where _j leaves column j out. In complete
    blocks this is var(Y_j - mean of the others) (k-1)/k / MS_j with B-1 and (B-1)(k-2) df.
    """
    if len(full.grid.labels) < 3:
        return ()
    return tuple(_gate_column(full, label) for label in full.grid.labels)


def _gate_column(full: Fit, label: str) -> GateFlag:
    rest = (full.places.raw if full.places else full.grid).without(label)
    rest = connected(rest, rest.labels[0])
    other = fit(rest)
    extra_df = full.df - other.df
    if other.df < 1 or extra_df < 1 or len(rest.labels) < len(full.grid.labels) - 1:
        # Not testable: the column's own error is the cautious choice.
        return GateFlag(label, None, None, True)
    extra = max(full.rss - other.rss, 0.0) / extra_df
    critical = f_quantile(GATE_LEVEL, extra_df, other.df)
    if other.rss == 0:
        return GateFlag(label, None, critical, flagged=full.rss > 0, apart=full.rss > 0)
    f = extra / (other.rss / other.df)
    return GateFlag(label, f, critical, f > critical, f > f_quantile(APART_LEVEL, extra_df, other.df))


Place = Literal["none", "linear", "factor"]


def with_places(grid: Grid, boots: Iterable[Boot], place: Place, columns: int) -> Grid:
    """The grid with its cells' places, as declared; without them if any is unknown.

    `columns`: how many were planned in each block. Positions count over the whole run, so that the remainder
    is the place even if cells are missing.
    """
    if place == "none" or not grid.blocks:
        return grid
    known: Mapping[tuple[int, str], int] = {
        (boot.block, boot.label): boot.position for boot in boots if boot.position is not None
    }
    at = np.full(grid.y.shape, np.nan)
    for b, block in enumerate(grid.blocks):
        for k, label in enumerate(grid.labels):
            at[b, k] = known.get((block, label), np.nan) - columns * (block - 1)
    present = ~np.isnan(grid.y)
    if np.isnan(at[present]).any():
        return grid
    at[~present] = np.nan
    return grid.at(terms(at, place, columns))


def terms(at: FloatArray, place: Place, columns: int) -> FloatArray:
    """Covariates of cells at these places of their blocks, NaN where a cell is missing."""
    if place == "linear":
        return (at / columns)[..., None]
    places = at - np.nanmin(at)
    if np.nanmax(places) >= columns:  # positions of columns without cells on this VM: count what was run
        places = np.where(np.isnan(at), np.nan, np.argsort(np.argsort(at, axis=1), axis=1))
    terms = [np.where(np.isnan(at), np.nan, places == level) for level in range(1, columns)]
    return np.stack(terms, axis=-1) if terms else np.empty((*at.shape, 0))
