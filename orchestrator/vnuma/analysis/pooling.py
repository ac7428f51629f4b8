"""One result over many runs: hosts, builds and generations of hardware as a sample of all.

The run is the replicate: a t interval over the runs' own estimates, equally weighted. This is the summary of
Hartung and Knapp (G. Knapp, J. Hartung 2003, Statistics in Medicine 22:2693) with equal weights. The usual
weights from each run's error are themselves estimates of 6 to 12 blocks: with them it errs in up to 7.6%, and
is no narrower (docs/statistics.md, 5a). Whether runs differ: B. L. Welch 1951, Biometrika 38:330.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vnuma.analysis.compare import Contrast, Interval, bonferroni
from vnuma.analysis.distributions import f_upper, t_quantile
from vnuma.analysis.outliers import OddCell
from vnuma.analysis.verdict import Rules, Verdict, decide

FEWEST_RUNS = 3
ALPHA = 0.05


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
