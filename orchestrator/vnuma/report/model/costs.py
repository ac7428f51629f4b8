"""The cost of the next run: boots and iterations for the desired width, from this run's figures."""

from __future__ import annotations

import statistics

from vnuma.analysis.allocation import Costs, Plans, allocate, upper_spread, wanted_width
from vnuma.analysis.result import Analysis
from vnuma.analysis.wording import plans_sentence, split_sentence
from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Outcome


def cheapest(loaded: LoadedRun, analysis: Analysis) -> Plans | None:
    """By the spread's upper bound, and by this run's cell times; None if either is unknown."""
    vm, design = loaded.vm(analysis.vm), loaded.study.design
    valid = loaded.attempts_of(vm, Outcome.VALID) if vm else ()
    took = [(one.ended_at - one.started_at).total_seconds() for one in valid if one.ended_at]
    spread = upper_spread(analysis.noise, design.iterations, len(loaded.study.workload.sizes))
    once = loaded.iteration_seconds.get(analysis.vm)
    if not took or spread is None or once is None:
        return None
    costs = Costs.measured(statistics.median(took), once, design.warmups, design.iterations)
    return allocate(loaded.result.design, wanted_width(loaded.result.design, design.precision), spread, costs)


def boots_or_iterations(loaded: LoadedRun, analysis: Analysis) -> str:
    """The components of the spread, and the consequence for the next run."""
    split, plans = split_sentence(analysis.noise, analysis.replicate), cheapest(loaded, analysis)
    if plans is None:
        return split
    return f"{split} {plans_sentence(plans, analysis.replicate, loaded.study.design.iterations)}"
