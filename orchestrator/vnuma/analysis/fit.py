"""The fit behind every comparison: ln(time) = column + block, with or without missing cells.

Complete blocks: residual R = Y - block mean - column mean + grand mean, df = (B-1)(k-1). With cells
missing the same least squares is solved by eliminating the blocks (intrablock analysis; F. Yates
1936, "Incomplete randomized blocks", Annals of Eugenics 7): C = diag(n) - N'diag(1/m)N, effects =
pinv(C) Q, and a contrast w has variance sigma^2 w'pinv(C)w. One path, so both cases are one formula.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from vnuma.analysis.cells import Grid
from vnuma.analysis.distributions import FloatArray, f_quantile

# Residuals of logarithms below this are the rounding of double arithmetic, not noise.
ROUNDING = 1e-12
GATE_LEVEL = 0.90


@dataclass(frozen=True, eq=False)
class Fit:
    """Least squares of arm + block. `effects` sum to zero; `residuals` are NaN where a cell is missing."""

    grid: Grid
    effects: FloatArray
    block_effects: FloatArray
    residuals: FloatArray
    variance: FloatArray
    rss: float
    df: int

    @property
    def ms(self) -> float | None:
        """Residual mean square: the variance of one cell; None without degrees of freedom."""
        return self.rss / self.df if self.df > 0 else None

    def contrast(self, weights: Mapping[str, float]) -> tuple[float, float]:
        """A weighted sum of columns: its estimate, and its variance divided by the residual variance."""
        w = np.array([weights.get(label, 0.0) for label in self.grid.labels])
        return float(w @ self.effects), float(w @ self.variance @ w)


@dataclass(frozen=True)
class GateFlag:
    """Does one column vary more than the others? `flagged` means its pooled error is not to be trusted.

    `f` and `critical` are None where the test has nothing to divide by; the flag is then set.
    """

    label: str
    f: float | None
    critical: float | None
    flagged: bool

    @property
    def testable(self) -> bool:
        """Has the column cells enough for the test?"""
        return self.critical is not None


def fit(grid: Grid) -> Fit:
    """Fit columns and blocks by least squares. The grid must be connected and hold a cell."""
    present = ~np.isnan(grid.y)
    y = np.where(present, grid.y, 0.0)
    per_block = present.sum(axis=1)
    variance = _variance(present.shape, present.tobytes())
    effects = variance @ _totals(grid)
    block_effects = np.where(present, y - effects, 0.0).sum(axis=1) / per_block
    residuals = np.where(present, y - effects - block_effects[:, None], np.nan)
    rss = float(np.nansum(residuals**2))
    if np.nanmax(np.abs(residuals)) < ROUNDING:
        rss = 0.0
    df = int(present.sum()) - len(grid.blocks) - (len(grid.labels) - 1)
    return Fit(grid, effects, block_effects, residuals, variance, rss, df)


def against(grid: Grid, label: str, reference: Sequence[str]) -> tuple[float, float]:
    """A column minus the reference, whose columns are one arm: each of their cells counts the same.

    Gives the estimate and its variance divided by that of a cell. In complete blocks this is the mean of
    the reference's columns; where one of them has gaps, the other makes up for it.
    """
    arms = [name for name in grid.labels if name not in reference[1:]]
    member = np.array(
        [[arm == (reference[0] if name in reference else name) for arm in arms] for name in grid.labels],
        dtype=np.int64,
    )
    counts = np.ascontiguousarray(~np.isnan(grid.y) @ member)
    w = np.array([(arm == label) - float(arm == reference[0]) for arm in arms])
    variance = _variance(counts.shape, counts.astype(np.uint8).tobytes())
    return float(w @ variance @ (_totals(grid) @ member)), float(w @ variance @ w)


def _totals(grid: Grid) -> FloatArray:
    """Sum of each column's cells, each less the mean of its block."""
    centred = grid.y - np.nanmean(grid.y, axis=1, keepdims=True)
    return np.asarray(np.nansum(centred, axis=0), dtype=np.float64)


@lru_cache(maxsize=256)
def _variance(shape: tuple[int, int], pattern: bytes) -> FloatArray:
    """pinv(C) from the cells of each block and column: most fits of a run have the same ones."""
    n = np.frombuffer(pattern, dtype=np.uint8).reshape(shape).astype(np.float64)
    information = np.diag(n.sum(axis=0)) - n.T @ (n / n.sum(axis=1)[:, None])
    return np.asarray(np.linalg.pinv(information, hermitian=True), dtype=np.float64)


def connected(grid: Grid, start: str) -> Grid:
    """The columns that share blocks with `start`, directly or through others: only they compare."""
    present = ~np.isnan(grid.y)
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
    """F test of each column's variance against the others', at 10%; empty for fewer than 3 columns.

    F = [(RSS - RSS_j) / (df - df_j)] / [RSS_j / df_j], where _j leaves column j out. In complete
    blocks this is var(Y_j - mean of the others) (k-1)/k / MS_j with B-1 and (B-1)(k-2) df.
    """
    if len(full.grid.labels) < 3:
        return ()
    return tuple(_gate_column(full, label) for label in full.grid.labels)


def _gate_column(full: Fit, label: str) -> GateFlag:
    rest = full.grid.without(label)
    rest = connected(rest, rest.labels[0])
    other = fit(rest)
    extra_df = full.df - other.df
    if other.df < 1 or extra_df < 1 or len(rest.labels) < len(full.grid.labels) - 1:
        # Not testable: the column's own error is the cautious choice.
        return GateFlag(label, None, None, True)
    extra = max(full.rss - other.rss, 0.0) / extra_df
    critical = f_quantile(GATE_LEVEL, extra_df, other.df)
    if other.rss == 0:
        return GateFlag(label, None, critical, flagged=full.rss > 0)
    f = extra / (other.rss / other.df)
    return GateFlag(label, f, critical, f > critical)
