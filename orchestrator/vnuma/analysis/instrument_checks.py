"""Checks of the instrument: the same arm against itself, and an arm with a known effect."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Literal

from vnuma.analysis import compare
from vnuma.analysis.distributions import t_quantile, t_two_sided
from vnuma.analysis.records import NotEvaluated, PositiveControl
from vnuma.domain.workloads.metric import Better, Replicate, plural

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
    se = math.hypot(se, math.sqrt(2 * comparison.rounding.variance(full.ms or 0.0)))
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
