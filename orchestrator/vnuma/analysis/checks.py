"""Checks of the instrument: the same arm against itself, an arm with a known effect, drift over time.

Randomised blocks keep the verdicts valid under drift; its alarms (two slopes, and the first iteration of each
boot, at 1%) say that the host was not steady, or that one warm-up was not enough. A slope over raw cells
would alarm falsely in 7% of studies, so these use their own error."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vnuma.analysis import compare
from vnuma.analysis.cells import Boot, Grid, grid
from vnuma.analysis.compare import finite, own_se, t_ratio
from vnuma.analysis.distributions import FloatArray, t_quantile, t_two_sided, t_upper
from vnuma.analysis.fit import Fit, fit
from vnuma.analysis.records import NotEvaluated, PositiveControl, worsening
from vnuma.analysis.rounding import ROUNDING
from vnuma.domain.workloads.metric import Better, Replicate
from vnuma.words.plain_text import plural

AA_ALARM = 0.01
AA_NOTE = 0.05
MIN_BOOTS_FOR_VERDICT = 6


@dataclass(frozen=True)
class AaCheck:
    """The reference's second column against its first, on the mean over all sizes.

    `noise_floor` is the 95% half-width as a ratio minus 1: the largest difference of two equal columns in 95%
    of such runs. It does not bound any arm's interval. `state`: alarm below p = 0.01 (false in 1% of
    studies), note below 0.05. Passing is weak evidence: at sigma 0.6% and 8 blocks it detects only about
    1.1%.
    """

    ratio: float
    interval: compare.Interval
    basis: compare.Basis
    se: float
    df: float
    t: float | None
    p: float
    noise_floor: float
    state: Literal["alarm", "note", "no alarm"]


@dataclass(frozen=True)
class ControlCheck:
    """A positive control passes if its simultaneous 95% interval excludes 1 in the expected direction."""

    arm: str
    expected: Literal["slower", "faster"]
    passed: bool


def check_a_a(comparison: compare.Comparison) -> AaCheck | NotEvaluated:
    """t of mean(A - R): SE = sqrt(2 MS/B) and the fit's df, or its own if either column is flagged.

    A coarse clock's steps are added, since equally rounded columns are not proven equal.
    """
    if comparison.fit is None:
        return NotEvaluated("the reference arm has no value")
    if len(comparison.reference) < 2:
        return NotEvaluated("the reference arm has only one column")
    first, second = comparison.reference[:2]
    full = comparison.fit
    basis: compare.Basis = "own" if comparison.flagged(first) or comparison.flagged(second) else "pooled"
    if basis == "own":
        d = compare.paired_differences(full.grid, second, (first,))
        if len(d) < 2:
            return NotEvaluated("fewer than 2 blocks contain both columns of the reference arm")
        estimate, (se, df) = statistics.fmean(d), compare.own_error(comparison.fit, d, second, (first,))
    else:
        if full.ms is None:
            return NotEvaluated("too few cells to estimate an error")
        estimate, factor = full.contrast({second: 1.0, first: -1.0})
        se, df = math.sqrt(full.ms * factor), full.df
    se = math.hypot(se, math.sqrt(comparison.rounded))
    t = compare.t_ratio(estimate, se)
    p = 0.0 if math.isinf(t) else t_two_sided(t, df)
    half_width = t_quantile(0.975, df) * se
    return AaCheck(
        ratio=math.exp(estimate),
        interval=compare.Interval.around(estimate, half_width),
        basis=basis,
        se=se,
        df=df,
        t=compare.finite(t),
        p=p,
        noise_floor=math.expm1(half_width),
        state="alarm" if p < AA_ALARM else "note" if p < AA_NOTE else "no alarm",
    )


def check_control(
    control: PositiveControl | None,
    contrasts: tuple[compare.Contrast, ...],
    better: Better = "lower",
    replicate: Replicate = "boot",
    least: int = MIN_BOOTS_FOR_VERDICT,
) -> ControlCheck | NotEvaluated:
    """Whether the known effect was detected."""
    if control is None:
        return NotEvaluated("not run: no arm was declared a positive control")
    contrast = next((item for item in contrasts if item.arm == control.arm), None)
    if contrast is None or contrast.inference is None or contrast.boots < least:
        return NotEvaluated(f"arm {control.arm} has fewer than {least} {plural(replicate)}")
    interval = contrast.inference.interval.slowness(better)
    seen = interval.low > 1 if control.direction == "slower" else interval.high < 1
    return ControlCheck(control.arm, control.direction, seen)


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


@dataclass(frozen=True)
class FirstIteration:
    """Mean over cells of ln(first) - ln(median of the rest), as a ratio; one-sided t, alarm at 1%.

    Only the slow side alarms: above 1 where lower is better, below it where higher is.
    """

    ratio: float
    df: int
    t: float | None
    p: float
    alarm: bool


def check_first_iteration(boots: Sequence[Boot], better: Better = "lower") -> FirstIteration | NotEvaluated:
    """Whether the first timed iteration is slower than the later ones of its boot."""
    usable = [boot for boot in boots if all(len(times) >= 2 and min(times) > 0 for times in boot.iterations)]
    if len(usable) < 3:
        return NotEvaluated("needs 3 cells with at least 2 timed iterations")
    scores = [
        statistics.fmean(
            [math.log(times[0]) - math.log(statistics.median(times[1:])) for times in boot.iterations]
        )
        for boot in usable
    ]
    mean, df = statistics.fmean(scores), len(scores) - 1
    t = t_ratio(mean, own_se(scores))
    slow = worsening(t, better)
    p = (0.0 if slow > 0 else 1.0) if math.isinf(slow) else t_upper(slow, df)
    return FirstIteration(math.exp(mean), df, finite(t), p, p < ALARM)
