"""What several runs say together: what changed between two, and one result over many.

Two runs: time between them is not randomised: whatever else changed is in an arm's own figures, to an unknown
extent. It is also in the reference's figures of the same blocks, so the gap to them is free of it. Blocks of
different runs are not pairs: the gaps are compared by Welch's t (B. L. Welch 1947, Biometrika 34:28),
Bonferroni over the arms.

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

from vnuma.analysis.cells import Boot, grid
from vnuma.analysis.compare import Contrast, Inference, Interval, bonferroni
from vnuma.analysis.distributions import f_upper, t_quantile
from vnuma.analysis.fit import connected, fit
from vnuma.analysis.outliers import OddCell
from vnuma.analysis.result import CellPoint
from vnuma.analysis.rounding import rounding_of
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
    """The coarseness of two runs' clocks, on the ln scale.

    `step`: the larger one. `left`: the error variance that a column's mean keeps, both runs' added.
    """

    step: float = 0.0
    left: float = 0.0


EXACT = Clocks()


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
    before: Mapping[str, Mapping[int, float]],
    after: Mapping[str, Mapping[int, float]],
    reference: str,
    rules: Rules,
    clocks: Clocks = EXACT,
) -> tuple[Change, ...]:
    """Every arm that both runs have, in the order of the first. Values: arm -> block -> Y."""
    arms = [arm for arm in before if arm in after]
    family = sum(arm != reference for arm in arms)
    gap_clocks = Clocks(clocks.step, 2 * clocks.left)  # in each run, the arm's mean and the reference's

    def verdict(
        arm: str, one: Iterable[float], other: Iterable[float], of: int, clocks: Clocks = clocks
    ) -> Verdict:
        return decide(_contrast(arm, list(one), list(other), of, clocks), rules, ALPHA)

    return tuple(
        Change(
            arm,
            len(before[arm]),
            len(after[arm]),
            None
            if arm == reference
            else verdict(
                arm, _gaps(before, arm, reference), _gaps(after, arm, reference), family, gap_clocks
            ),
            verdict(arm, before[arm].values(), after[arm].values(), 1),
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


def clocks_of(runs: Iterable[tuple[Sequence[CellPoint], Sequence[int]]]) -> Clocks:
    """From each run's cells, in the mean over the sizes at these places."""
    found = [_clock(points, sizes) for points, sizes in runs]
    return Clocks(max(step for step, _ in found), sum(left for _, left in found))


def _clock(points: Sequence[CellPoint], sizes: Sequence[int]) -> tuple[float, float]:
    """One run's step and the variance that it leaves. Cells scatter as they do at these sizes."""
    boots = [
        Boot(point.label, point.arm, point.block, point.position, tuple(point.iterations[i] for i in sizes))
        for point in points
    ]
    figures = [[x for boot in boots for x in boot.iterations[place]] for place in range(len(sizes))]
    rounding = rounding_of(figures, [1 / len(sizes)] * len(sizes))
    cells = grid(boots, tuple(dict.fromkeys(boot.label for boot in boots)), lambda boot: boot.log_mean)
    ms = fit(connected(cells, cells.labels[0])).ms if boots else None
    return rounding.step, rounding.variance(ms or 0.0)


def _gaps(values: Mapping[str, Mapping[int, float]], arm: str, reference: str) -> list[float]:
    base = values.get(reference, {})
    return [value - base[block] for block, value in values[arm].items() if block in base]


def _contrast(
    arm: str, before: Sequence[float], after: Sequence[float], family: int, clocks: Clocks
) -> Contrast:
    """As a contrast, so that verdicts come from the same table."""
    boots = min(len(before), len(after))
    if not boots:
        return Contrast(arm, arm, 0, None, None, None, ())
    estimate = statistics.fmean(after) - statistics.fmean(before)
    inference = _welch(estimate, before, after, family, clocks.left) if boots >= 2 else None
    return Contrast(arm, arm, boots, estimate, inference, None, (), clocks.step)


def _welch(
    estimate: float, before: Sequence[float], after: Sequence[float], family: int, rounded: float
) -> Inference:
    squares = [statistics.variance(values) / len(values) for values in (before, after)]
    total = sum(squares)
    if total < 1e-24:
        total, df = 0.0, len(before) + len(after) - 2.0
    else:
        df = total**2 / sum(
            square**2 / (len(values) - 1) for square, values in zip(squares, (before, after), strict=True)
        )
    return bonferroni(estimate, math.sqrt(total + rounded), df, family, ALPHA)
