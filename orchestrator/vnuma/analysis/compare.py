"""Every arm against the reference: pooled error with a gate, simultaneous intervals, adjusted p."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from vnuma.analysis.cells import Grid, arm_of
from vnuma.analysis.distributions import dunnett_constant, dunnett_p, t_quantile, t_two_sided
from vnuma.analysis.fit import Fit, GateFlag, against, connected, fit, gate, uneven
from vnuma.analysis.outliers import OddCell, noticeable, odd_cells
from vnuma.analysis.rank import RankEstimate, rank_estimate
from vnuma.analysis.rounding import NO_ROUNDING, Rounding
from vnuma.analysis.stopping import RepeatedLooks
from vnuma.domain.workloads.metric import Better

Basis = Literal["pooled", "own"]


@dataclass(frozen=True)
class Interval:
    """Limits of a ratio to the reference."""

    low: float
    high: float

    @classmethod
    def around(cls, estimate: float, half_width: float) -> Interval:
        """From an estimate and a half-width on the ln scale."""
        return cls(math.exp(estimate - half_width), math.exp(estimate + half_width))

    def contains(self, ratio: float) -> bool:
        """Whether the ratio is inside, limits included."""
        return self.low <= ratio <= self.high

    def beyond(self, margin: float) -> bool:
        """Whether the whole interval lies outside the equivalence band (0.01 is 1%)."""
        return self.low > 1 + margin or self.high < 1 / (1 + margin)

    def slowness(self, better: Better) -> Interval:
        """The same limits, inverted if necessary so that above 1 is slower (worse)."""
        return self if better == "lower" else Interval(1 / self.high, 1 / self.low)


@dataclass(frozen=True)
class Inference:
    """What the error of one contrast permits. All on the ln scale except the intervals.

    `interval` is simultaneous at 1 - alpha over all arms, `equivalence` at 1 - 2 alpha (used only for
    equivalence), `unadjusted` at 1 - alpha for this arm alone (appendix). `constant` and `half_width` belong
    to `interval`. `t` is None when the cells show no error at all (SE zero). Repeated looks have neither
    `adjusted_p` nor `unadjusted`.
    """

    basis: Basis
    se: float
    df: float
    t: float | None
    adjusted_p: float | None
    constant: float
    half_width: float
    interval: Interval
    equivalence: Interval
    unadjusted: Interval | None


@dataclass(frozen=True)
class Contrast:
    """One arm against the reference. `boots` counts the blocks with both: its pairs.

    `log_ratio` is None without pairs; `inference` is None when nothing estimates the error. `step`: the
    clock's coarseness on the ln scale; `rounded`: the error variance that it leaves in the mean difference,
    whatever the blocks. `prediction`: where the ratio of one more boot of the arm to one more
    of the reference lies in 95% of cases. `odd`: the odd cells of the arm and of the reference; `noticeable`:
    the smallest shift (ln scale) that makes a cell odd, None if not evaluated. `paired`: the block of each
    difference.
    """

    arm: str
    label: str
    boots: int
    log_ratio: float | None
    inference: Inference | None
    rank: RankEstimate | None
    differences: tuple[float, ...]
    step: float = 0.0
    prediction: Interval | None = None
    odd: tuple[OddCell, ...] = ()
    noticeable: float | None = None
    paired: tuple[int, ...] = ()
    rounded: float = 0.0

    @property
    def ratio(self) -> float | None:
        """The arm's figure divided by the reference's."""
        return None if self.log_ratio is None else math.exp(self.log_ratio)

    @property
    def rests_on_pairs(self) -> bool:
        """Whether its error is that of its own pairs, not the pooled one."""
        return self.inference is not None and self.inference.basis == "own"


@dataclass(frozen=True, eq=False)
class Comparison:
    """All contrasts of one grid, with their fit and gate; `fit` is None without cells."""

    fit: Fit | None
    gates: tuple[GateFlag, ...]
    reference: tuple[str, ...]
    contrasts: tuple[Contrast, ...]
    alpha: float
    rounding: Rounding = NO_ROUNDING
    odd: tuple[OddCell, ...] = ()
    looks: RepeatedLooks | None = None

    @property
    def half_widths(self) -> tuple[float | None, ...]:
        """The 95% simultaneous half-widths, on the ln scale."""
        return tuple(item.inference.half_width if item.inference else None for item in self.contrasts)

    @cached_property
    def rounded(self) -> float:
        """The error variance that a coarse clock leaves in a mean difference, whatever the blocks.

        Both columns of the reference are one arm: if rounded alike, they count as one.
        """
        return 2 * self.rounding.variance(self.fit.ms or 0.0 if self.fit else 0.0)

    def flagged(self, label: str) -> bool:
        """Whether the gate forbids the pooled error for this column; true without a gate.

        A column that scatters far more than the others widens the pooled error of them all, so then no
        column uses it.
        """
        if any(flag.apart for flag in self.gates):
            return True
        return all(flag.flagged for flag in self.gates if flag.label == label)


def compare(
    grid: Grid,
    reference: Sequence[str],
    arms: Mapping[str, str],
    alpha: float = 0.05,
    rounding: Rounding = NO_ROUNDING,
    looks: RepeatedLooks | None = None,
) -> Comparison:
    """Compare each column of `arms` (label -> arm) with the mean of the reference's columns.

    With `looks`, intervals hold at every look of the study together.

    A single arm has its own pairs and no other arm to share an error with: the paired t is exact, while a
    gate on three columns would be wrong in up to 8% of studies.
    """
    present = tuple(label for label in reference if label in grid.labels)
    if not present:
        return Comparison(None, (), (), tuple(_absent(label, arm) for label, arm in arms.items()), alpha)
    grid = connected(grid, present[0])
    present = tuple(label for label in present if label in grid.labels)
    full = fit(grid)
    family = sum(label in grid.labels for label in arms)
    flags = gate(full) if family > 1 else ()
    mine = [flag for flag in flags if flag.label in present]
    spare = next((flag.label for flag in mine if not flag.testable), None)
    if spare and any(flag.testable for flag in mine):  # the other column has enough cells for the gate
        return compare(
            grid.without(spare), [label for label in present if label != spare], arms, alpha, rounding, looks
        )
    result = Comparison(full, flags, present, (), alpha, rounding, odd_cells(full), looks)
    contrasts = tuple(
        _contrast(result, label, arm, family) if label in grid.labels else _absent(label, arm)
        for label, arm in arms.items()
    )
    return replace(result, contrasts=contrasts)


def paired_differences(grid: Grid, label: str, reference: Sequence[str]) -> tuple[float, ...]:
    """d[b] = Y[b, label] - mean of the reference's columns that block b has, over blocks with any."""
    return tuple(_pairs(grid, label, reference).values())


def _pairs(grid: Grid, label: str, reference: Sequence[str]) -> dict[int, float]:
    d = (x - base for x, (base, _) in zip(grid.columns[label], arm_of(grid, tuple(reference)), strict=True))
    return {block: x for block, x in zip(grid.blocks, d, strict=True) if not math.isnan(x)}


def _absent(label: str, arm: str) -> Contrast:
    return Contrast(arm, label, 0, None, None, None, ())


def _contrast(comparison: Comparison, label: str, arm: str, family: int) -> Contrast:
    full = comparison.fit
    assert full is not None
    reference = comparison.reference
    pairs = _pairs(full.grid, label, reference)
    d = tuple(pairs.values())
    own = comparison.flagged(label) or any(comparison.flagged(other) for other in reference)
    rounded = comparison.rounded
    inference = None
    if own and len(d) >= 2:
        estimate, (se, df) = statistics.fmean(d), own_error(full, d, label, reference)
        se = math.hypot(se, math.sqrt(rounded))
        inference = _inferred(comparison, estimate, "own", se, df, family, len(d))
    else:
        estimate, factor = against(full, label, reference)
        if not own and full.ms is not None:
            se = math.sqrt(full.ms * factor + rounded)
            inference = _inferred(comparison, estimate, "pooled", se, full.df, family, len(d))
    return Contrast(
        arm,
        label,
        len(d),
        estimate,
        inference,
        rank_estimate(d),
        d,
        comparison.rounding.step,
        _prediction(comparison, label, d, estimate) if inference else None,
        tuple(cell for cell in comparison.odd if cell.label in (label, *reference)),
        noticeable(full),
        tuple(pairs),
        rounded,
    )


def _prediction(comparison: Comparison, label: str, d: Sequence[float], estimate: float) -> Interval | None:
    """Around the estimate, adding the error of one boot on either side to its own.

    Uses the arm's own pairs, since a single boot scatters like its own arm, whatever the others do.
    """
    if comparison.fit is None or len(d) < 2:
        return None
    each = [paired_differences(comparison.fit.grid, label, (other,)) for other in comparison.reference]
    one = statistics.fmean([_variance(pairs) for pairs in each if len(pairs) > 1] or [_variance(d)])
    width = t_quantile(0.975, len(d) - 1) * math.sqrt(own_se(d) ** 2 + one + comparison.rounded)
    return Interval.around(estimate, width)


def _inferred(
    comparison: Comparison, estimate: float, basis: Basis, se: float, df: float, family: int, pairs: int
) -> Inference | None:
    """Intervals of a repeated look, at Student's quantiles at its levels (Jennison & Turnbull 2000, section
    11.3); else Dunnett's on the pooled error, a paired t with Bonferroni on the arm's own.
    """
    if comparison.looks is not None:
        at = comparison.looks.levels_at(pairs)
        if at is None:
            return None
        main, wide = (t_quantile(1 - level / 2, df) for level in at)
        return _inference(estimate, basis, se, df, None, main, wide, None)
    alpha = comparison.alpha
    if basis == "own":
        return bonferroni(estimate, se, df, family, alpha)
    return simultaneous(estimate, se, df, family, 1.0 / (1 + len(comparison.reference)), alpha)


def simultaneous(estimate: float, se: float, df: float, family: int, rho: float, alpha: float) -> Inference:
    """Dunnett's intervals for `family` contrasts of correlation `rho` with a pooled error."""
    main, wide = (dunnett_constant(level, family, df, rho) for level in (alpha, 2 * alpha))
    p = dunnett_p(t_ratio(estimate, se), family, df, rho)
    return _inference(estimate, "pooled", se, df, p, main, wide, t_quantile(1 - alpha / 2, df))


def bonferroni(estimate: float, se: float, df: float, family: int, alpha: float) -> Inference:
    """An arm's own t, of `family` that hold together at 1 - `alpha`; estimate and SE on the ln scale."""
    t = t_ratio(estimate, se)
    main = t_quantile(1 - alpha / (2 * family), df)
    wide = t_quantile(1 - alpha / family, df)
    p = 0.0 if math.isinf(t) else min(1.0, family * t_two_sided(t, df))
    return _inference(estimate, "own", se, df, p, main, wide, t_quantile(1 - alpha / 2, df))


def own_error(full: Fit, d: Sequence[float], label: str, reference: Sequence[str]) -> tuple[float, float]:
    """SE of the pairs themselves and its df, both adjusted for covariates like the pooled error."""
    df = len(d) - 1
    if full.places is None or full.ms is None:
        return own_se(d), df
    spread = full.ms * uneven(full, label, reference)
    return math.hypot(own_se(d) * math.sqrt(full.own_scale), math.sqrt(spread)), df / full.own_scale


def own_se(d: Sequence[float]) -> float:
    """sd(d)/sqrt(B): the standard error from the pairs themselves; zero if it is only rounding."""
    sd = math.sqrt(_variance(d))
    return 0.0 if sd < 1e-12 else sd / math.sqrt(len(d))


def _variance(d: Sequence[float]) -> float:
    x = np.asarray(d, dtype=np.float64)
    x = x - np.add.reduce(x) / len(x)
    return float(np.add.reduce(x * x) / (len(x) - 1))


def t_ratio(estimate: float, se: float) -> float:
    """Estimate over standard error; infinite for a difference without any error."""
    if se > 0:
        return estimate / se
    return 0.0 if abs(estimate) < 1e-12 else math.copysign(math.inf, estimate)


def finite(t: float) -> float | None:
    """A t that can be stored: None instead of infinity."""
    return None if math.isinf(t) else t


def _inference(
    estimate: float,
    basis: Basis,
    se: float,
    df: float,
    p: float | None,
    main: float,
    wide: float,
    alone: float | None,
) -> Inference:
    return Inference(
        basis=basis,
        se=se,
        df=df,
        t=finite(t_ratio(estimate, se)),
        adjusted_p=p,
        constant=main,
        half_width=main * se,
        interval=Interval.around(estimate, main * se),
        equivalence=Interval.around(estimate, wide * se),
        unadjusted=None if alone is None else Interval.around(estimate, alone * se),
    )
