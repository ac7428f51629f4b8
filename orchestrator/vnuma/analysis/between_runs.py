"""What several runs say together: what changed between two, and one result over many.

Before and after a change: time between runs is not randomised: whatever else changed is in an arm's own
figures, to an unknown extent. It is also in the reference's figures of the same blocks, so the gap to them is
free of it. Blocks of different runs are not pairs: the gaps are compared by Welch's t (B. L. Welch 1947,
Biometrika 34:28), Bonferroni over the arms. Two runs cannot show how an arm scatters from run to run.

Many: the run is the replicate: a t interval over the runs' own estimates, equally weighted. This is the
summary of Hartung and Knapp (G. Knapp, J. Hartung 2003, Statistics in Medicine 22:2693) with equal weights.
The usual weights from each run's error are themselves estimates of 6 to 12 blocks: with them it errs in up to
7.6%, and is no narrower. Whether runs differ: B. L. Welch 1951, Biometrika 38:330."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vnuma.analysis.cells import Boot, grid
from vnuma.analysis.compare import Contrast, Inference, Interval, bonferroni, simultaneous
from vnuma.analysis.distributions import f_upper, t_quantile
from vnuma.analysis.fit import connected, fit
from vnuma.analysis.outliers import OddCell
from vnuma.analysis.result import CellPoint
from vnuma.analysis.rounding import clock_steps, rounding_of
from vnuma.analysis.verdict import Rules, Verdict, decide

FEWEST_RUNS = 3


@dataclass(frozen=True)
class Heterogeneity:
    """`p`: for no difference between runs beyond their own errors. `sd`: between runs, 0 if none is seen."""

    f: float
    p: float
    sd: float


@dataclass(frozen=True)
class Pooled:
    """One arm over runs. `prediction`: where one more such run's result lies in 95% of cases.

    `verdict` and `prediction` are None below 3 runs. The verdict's statements about single boots are about
    the boots of all runs together.
    """

    arm: str
    runs: int
    verdict: Verdict | None
    prediction: Interval | None
    heterogeneity: Heterogeneity | None


def pool(arm: str, runs: Sequence[Contrast], family: int, rules: Rules) -> Pooled:
    """`runs`: the arm's contrast in each; `family`: how many arms are summarised together."""
    runs = [run for run in runs if run.log_ratio is not None]
    estimates = [run.log_ratio for run in runs if run.log_ratio is not None]
    if len(estimates) < FEWEST_RUNS:
        return Pooled(arm, len(estimates), None, None, None)
    mean, sd, n = statistics.fmean(estimates), statistics.stdev(estimates), len(estimates)
    sd = 0.0 if sd < 1e-12 else sd
    # Runs on a coarse clock may all be rounded alike: more of them do not average its error away.
    rounded = statistics.fmean(run.rounded for run in runs)
    error = bonferroni(mean, math.sqrt(sd**2 / n + rounded), n - 1, family, ALPHA)
    summary = _every_boot(replace(runs[0], arm=arm, label=arm, log_ratio=mean, inference=error), runs)
    return Pooled(
        arm,
        n,
        decide(summary, rules, ALPHA),
        Interval.around(mean, t_quantile(1 - ALPHA / 2, n - 1) * math.sqrt(sd**2 * (1 + 1 / n) + rounded)),
        heterogeneity([run.differences for run in runs]),
    )


def _every_boot(summary: Contrast, runs: Sequence[Contrast]) -> Contrast:
    """The summary with the boots of all runs, which decide what "equivalent" may hide; blocks renumbered."""
    pairs: list[int] = []
    odd: list[OddCell] = []
    for run in runs:
        first = max((*pairs, *(cell.block for cell in odd)), default=-1) + 1
        pairs += [first + block for block in run.paired]
        odd += [
            replace(
                cell,
                label=summary.label if cell.label == run.label else cell.label,
                block=first + cell.block,
            )
            for cell in run.odd
        ]
    seen = [run.noticeable for run in runs if run.noticeable is not None]
    return replace(
        summary,
        boots=sum(run.boots for run in runs),
        rank=None,
        differences=tuple(one for run in runs for one in run.differences),
        step=max(run.step for run in runs),
        prediction=None,
        odd=tuple(odd),
        noticeable=max(seen) if len(seen) == len(runs) else None,
        paired=tuple(pairs),
    )


def heterogeneity(runs: Sequence[Sequence[float]]) -> Heterogeneity | None:
    """Welch's F over each run's within-block differences; None where one does not scatter.

    `sd` is the method of moments: variance of the means less their mean squared error (L. V. Hedges 1983).
    """
    if any(len(run) < 2 or statistics.variance(run) < 1e-24 for run in runs):
        return None
    k = len(runs)
    means = [statistics.fmean(run) for run in runs]
    errors = [statistics.variance(run) / len(run) for run in runs]
    weights = [1 / error for error in errors]
    total = sum(weights)
    centre = sum(w * m for w, m in zip(weights, means, strict=True)) / total
    between = sum(w * (m - centre) ** 2 for w, m in zip(weights, means, strict=True)) / (k - 1)
    uneven = sum(
        (1 - weight / total) ** 2 / (len(run) - 1) for weight, run in zip(weights, runs, strict=True)
    )
    f = between / (1 + 2 * (k - 2) / (k**2 - 1) * uneven)
    p = f_upper(f, k - 1, (k**2 - 1) / (3 * uneven))
    return Heterogeneity(f, p, math.sqrt(max(0.0, statistics.variance(means) - statistics.fmean(errors))))


ALPHA = 0.05


@dataclass(frozen=True)
class Clocks:
    """The coarseness of the clocks before and after, on the ln scale.

    `step`: the largest one. `left`: the error variance that a column's mean keeps, both sides' added. Runs of
    one side may all be rounded alike, so a side keeps the mean of theirs.
    """

    step: float = 0.0
    left: float = 0.0


EXACT = Clocks()


LOOKED_AT_ALPHA = 0.03
"""The level where looks decided how many boots an arm has: at 5% the gaps of such runs err in up to 8.7%."""

_SHARED = 0.5
"""The correlation of two arms' gaps to one reference that scatters as they do."""

Values = Mapping[str, Mapping[int, float]]
"""One run: arm -> block -> Y."""
Sides = tuple[Sequence[Sequence[float]], ...]
"""One arm's values in each run before the change, and in each run after it."""


@dataclass(frozen=True)
class Change:
    """One arm, after relative to before: ratios are after / before; `before` and `after` count boots.

    `gap`: its difference from the reference; None for the reference itself. `own`: its own figures, without a
    verdict, since they include everything that differs between the runs.
    """

    arm: str
    before: int
    after: int
    gap: Verdict | None
    own: Verdict


def changes(
    before: Sequence[Values],
    after: Sequence[Values],
    reference: str,
    rules: Rules,
    clocks: Clocks = EXACT,
    alpha: float = ALPHA,
) -> tuple[Change, ...]:
    """Every arm that all runs have, in the order of the first.

    With three runs or more an interval is as wide as the runs of one side scatter, if that is more than their
    boots explain.
    """
    arms = [arm for arm in before[0] if all(arm in run for run in (*before, *after))]
    sides = (before, after)
    own = {arm: tuple([[*run[arm].values()] for run in side] for side in sides) for arm in arms}
    gaps = {
        arm: tuple([_gaps(run, arm, reference) for run in side] for side in sides)
        for arm in arms
        if arm != reference
    }
    gap_clocks = Clocks(clocks.step, 2 * clocks.left)  # in each run, the arm's mean and the reference's

    def verdict(arm: str, family: Mapping[str, Sides], clocks: Clocks) -> Verdict:
        return decide(_contrast(arm, family, clocks, alpha), rules, ALPHA)

    return tuple(
        Change(
            arm,
            sum(map(len, own[arm][0])),
            sum(map(len, own[arm][1])),
            verdict(arm, gaps, gap_clocks) if arm in gaps else None,
            verdict(arm, {arm: own[arm]}, clocks),
        )
        for arm in arms
    )


def boot_values(points: Iterable[CellPoint], sizes: Sequence[int]) -> dict[str, dict[int, float]]:
    """Arm -> block -> Y, the mean of ln(median) over the sizes at these places; A/A columns averaged."""
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        value = statistics.fmean(math.log(point.medians[index]) for index in sizes)
        found[point.arm][point.block].append(value)
    return {
        arm: {block: statistics.fmean(values) for block, values in blocks.items()}
        for arm, blocks in found.items()
    }


def clocks_of(
    sides: Iterable[Iterable[tuple[Sequence[CellPoint], Sequence[int]]]], *, printed: bool = False
) -> Clocks:
    """From each run's cells on either side, in the mean over the sizes at these places.

    `printed`: as `clock_steps` has it.
    """
    found = [[_clock(points, sizes, printed=printed) for points, sizes in side] for side in sides]
    return Clocks(
        max(step for side in found for step, _ in side),
        sum(statistics.fmean(left for _, left in side) for side in found),
    )


def _clock(points: Sequence[CellPoint], sizes: Sequence[int], *, printed: bool) -> tuple[float, float]:
    """One run's step and the variance that it leaves. Cells scatter as they do at these sizes."""
    boots = [
        Boot(point.label, point.arm, point.block, point.position, tuple(point.iterations[i] for i in sizes))
        for point in points
    ]
    figures = [[x for boot in boots for x in boot.iterations[place]] for place in range(len(sizes))]
    rounding = rounding_of(clock_steps(figures, printed=printed), [1 / len(sizes)] * len(sizes))
    cells = grid(boots, tuple(dict.fromkeys(boot.label for boot in boots)), lambda boot: boot.log_mean)
    ms = fit(connected(cells, cells.labels[0])).ms if boots else None
    return rounding.step, rounding.variance(ms or 0.0)


def _gaps(values: Values, arm: str, reference: str) -> list[float]:
    base = values.get(reference, {})
    return [value - base[block] for block, value in values[arm].items() if block in base]


def _contrast(arm: str, family: Mapping[str, Sides], clocks: Clocks, alpha: float) -> Contrast:
    """As a contrast, so that verdicts come from the same table."""
    before, after = family[arm]
    boots = min(map(len, (*before, *after)))
    if not boots:
        return Contrast(arm, arm, 0, None, None, None, ())
    one, other = (statistics.fmean(map(statistics.fmean, side)) for side in (before, after))
    found = [
        _by_boots(other - one, before, after, len(family), clocks.left, alpha) if boots >= 2 else None,
        _by_runs(other - one, arm, family, clocks.left, alpha),
    ]
    return Contrast(arm, arm, boots, other - one, _widest(found), None, (), clocks.step)


def _widest(found: Iterable[Inference | None]) -> Inference | None:
    """The one with the widest 95% interval, and the widest of the 90% intervals: with few runs another's."""
    known = [each for each in found if each]
    if not known:
        return None
    equivalence = max((each.equivalence for each in known), key=lambda each: each.high)
    return replace(max(known, key=lambda each: each.half_width), equivalence=equivalence)


def _by_boots(
    estimate: float,
    before: Sequence[Sequence[float]],
    after: Sequence[Sequence[float]],
    family: int,
    rounded: float,
    alpha: float,
) -> Inference:
    """Welch's t: as if runs did not differ but by their boots."""
    squares = [
        (statistics.variance(values) / len(values) / len(side) ** 2, len(values) - 1)
        for side in (before, after)
        for values in side
    ]
    total = math.fsum(square for square, _ in squares)
    if total < 1e-24:
        total, df = 0.0, math.fsum(each for _, each in squares)
    else:
        df = total**2 / math.fsum(square**2 / each for square, each in squares)
    return bonferroni(estimate, math.sqrt(total + rounded), df, family, alpha)


def _by_runs(
    estimate: float, arm: str, family: Mapping[str, Sides], rounded: float, alpha: float
) -> Inference | None:
    """By how runs of one side scatter about arm + run; None where no side has two runs.

    Arms are taken to scatter alike, or this one more: then its own scatter counts, with all arms' degrees of
    freedom.
    """
    sides = family[arm]
    left = sum(map(len, sides)) - 2
    if left < 1:
        return None
    family = {name: one for name, one in family.items() if all(values for side in one for values in side)}
    residual = own = 0.0
    for side in (0, 1):
        means = np.array([[statistics.fmean(values) for values in one[side]] for one in family.values()])
        means -= means.mean(axis=1, keepdims=True)
        with_reference = np.vstack([np.zeros(means.shape[1]), means])
        residual += float(((with_reference - with_reference.mean(axis=0)) ** 2).sum())
        own += float((means[list(family).index(arm)] ** 2).sum())
    each = max(2 * residual / (left * len(family)), own / left)
    se = math.sqrt(each * sum(1 / len(side) for side in sides) + rounded)
    return simultaneous(estimate, se, left * len(family), len(family), _SHARED, alpha)
