"""Drift over time: two slopes, each with an alarm at 1%.

Randomised blocks keep the verdicts valid under drift; the alarms say that the host was not steady. A slope
over raw cells would alarm falsely in 7% of studies, so these use their own error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vnuma.analysis.cells import Boot, Grid, grid
from vnuma.analysis.compare import finite, t_ratio
from vnuma.analysis.distributions import FloatArray, t_two_sided
from vnuma.analysis.fit import ROUNDING, Fit, fit
from vnuma.analysis.records import NotEvaluated

ALARM = 0.01


NOT_RUN = NotEvaluated("no cell ran the sentinel")
"""The study did not request it, its workload has none, or no boot reached it."""


@dataclass(frozen=True)
class Slope:
    """A trend of ln(figure): `slope` per block, or per place within a block (0.001 is 0.1%)."""

    slope: float
    se: float
    df: int
    t: float | None
    p: float
    alarm: bool


@dataclass(frozen=True)
class Drift:
    """The two trends."""

    between_blocks: Slope | NotEvaluated
    within_blocks: Slope | NotEvaluated


def check_drift(full: Fit, positions: Mapping[tuple[int, str], int]) -> Drift:
    """Both slopes. `positions` gives each cell's (block, label) place in the order run."""
    return Drift(between_blocks(full), within_blocks(full, positions))


def between_blocks(full: Fit) -> Slope | NotEvaluated:
    """Ordinary regression of the block means on the block number; B-2 df.

    With missing cells, the fit's block effects replace the block means (identical in complete blocks).
    """
    blocks = np.array(full.grid.blocks, dtype=np.float64)
    if len(blocks) < 3:
        return NotEvaluated("a trend over blocks needs at least 3 blocks")
    x = blocks - blocks.mean()
    y = full.block_effects - full.block_effects.mean()
    return _slope(x, y, len(blocks) - 2)


def within_blocks(full: Fit, positions: Mapping[tuple[int, str], int]) -> Slope | NotEvaluated:
    """Regression of the residuals on the place within the block; df - 1.

    Columns and blocks are removed from the place as from the times, so the test is that of one covariate
    added to the fit.
    """
    grid = full.grid
    if full.df < 2:
        return NotEvaluated("too few cells for a trend within blocks")
    places = np.full(grid.y.shape, np.nan)
    for b, block in enumerate(grid.blocks):
        present = [label for i, label in enumerate(grid.labels) if not np.isnan(grid.y[b, i])]
        if any((block, label) not in positions for label in present):
            return NotEvaluated("the order within blocks was not recorded")
        for rank, label in enumerate(sorted(present, key=lambda name: positions[block, name]), start=1):
            places[b, grid.labels.index(label)] = rank
    x = fit(Grid(grid.labels, grid.blocks, places)).residuals
    if np.nansum(x**2) < 1e-9:
        return NotEvaluated("every block ran in the same order, so place and arm cannot be separated")
    kept = ~np.isnan(x)
    return _slope(x[kept], full.residuals[kept], full.df - 1)


def _slope(x: FloatArray, y: FloatArray, df: int) -> Slope:
    """Least squares through the origin of centred values, with the given df."""
    square = float(x @ x)
    slope = float(x @ y) / square
    rest = y - slope * x
    variance = 0.0 if np.abs(rest).max() < ROUNDING else float(rest @ rest) / df
    se = math.sqrt(variance / square)
    t = t_ratio(slope, se)
    p = 0.0 if math.isinf(t) else t_two_sided(t, df)
    return Slope(slope, se, df, finite(t), p, p < ALARM)


def check_sentinel(boots: Sequence[Boot], labels: Sequence[str]) -> Drift | NotEvaluated:
    """Slopes of ln(median sentinel time) over blocks and within them, for boots with one."""
    watched = [boot for boot in boots if boot.sentinel_ms]
    if not watched:
        return NOT_RUN
    cells = grid(watched, labels, lambda boot: math.log(boot.sentinel_ms or 1.0))
    positions = {(boot.block, boot.label): boot.position for boot in watched if boot.position is not None}
    return check_drift(fit(cells), positions)
