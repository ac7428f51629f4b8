"""Whether one warm-up was enough: the first timed iteration against the rest, over cells."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from vnuma.analysis.cells import Boot
from vnuma.analysis.compare import finite, own_se, t_ratio
from vnuma.analysis.distributions import t_upper
from vnuma.analysis.records import NotEvaluated, worsening
from vnuma.domain.workloads.metric import Better

ALARM = 0.01


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
    scores = [_score(boot) for boot in usable]
    mean, df = statistics.fmean(scores), len(scores) - 1
    t = t_ratio(mean, own_se(scores))
    slow = worsening(t, better)
    p = (0.0 if slow > 0 else 1.0) if math.isinf(slow) else t_upper(slow, df)
    return FirstIteration(math.exp(mean), df, finite(t), p, p < ALARM)


def _score(boot: Boot) -> float:
    return statistics.fmean(
        math.log(times[0]) - math.log(statistics.median(times[1:])) for times in boot.iterations
    )
