"""A pilot: what an earlier run of a study says about the spread, the cost of a boot and the iterations."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from vnuma import analysis
from vnuma.analysis.planning import Spread
from vnuma.analysis.records import Sample
from vnuma.analysis.result import Analysis
from vnuma.analysis.variance import iterations_recommended
from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study
from vnuma.errors import InputError
from vnuma.store import attempts, cells, runs, vms
from vnuma.store.analysed import cell_records
from vnuma.store.open import Store
from vnuma.store.states import Outcome
from vnuma.store.timed import timed_samples

FEWEST_BLOCKS = 3


@dataclass(frozen=True)
class Pilot:
    """A run to plan with. `upper` is the upper bound of its cell SD (80%), `measured` the SD itself.

    `iterations` are those that its costs and variances recommend; None if they could not be told.
    `differs`: what of it is not as in the study that is planned.
    """

    run: str
    simulated: str | None
    measured: float
    upper: float
    df: int
    blocks: int
    cell_seconds: float
    iterations: int | None
    differs: tuple[str, ...]

    @property
    def spread(self) -> Spread:
        """The SD to plan with: planning with the measured one reaches its power in half of pilots only."""
        return Spread(f"pilot {self.run}", self.upper)


def read_pilot(store: Store, name: str, study: Study) -> Pilot:
    """Analyse a run as a pilot of `study`; of several VMs, the one with the largest spread.

    Raises InputError for a run with fewer than 3 blocks or without a spread.
    """
    with store.read() as connection:
        run = runs.get_run(connection, name)
        own = parse_study(runs.get_study(connection, run.study_id).yaml, f"study of {run.name}")
        planned = cells.cells_of_run(connection, run.id)
        tried = attempts.lines_of_run(connection, run.id)
        names = {vm.id: vm.name for vm in vms.vms_of_run(connection, run.id)}
        timed = timed_samples(connection, run.id)
    result = analysis.analyse(
        timed, cell_records(planned, tried, names), analysis.design_of(own, {cell.label for cell in planned})
    )
    usable = [item for item in result.primary if item.noise.cell_sd and item.blocks >= FEWEST_BLOCKS]
    if not usable:
        raise InputError(
            f"{run.name} has no VM with {FEWEST_BLOCKS} blocks or more: its spread is not known.",
            fix="Run more blocks, or plan with assumed variances: leave --pilot out.",
        )
    worst = max(usable, key=lambda item: item.noise.cell_sd_upper or 0.0)
    durations = [
        (line.ended_at - line.started_at).total_seconds()
        for line in tried
        if line.ended_at and line.outcome is Outcome.VALID
    ]
    cell_seconds = statistics.median(durations)
    return Pilot(
        run=run.name,
        simulated=run.simulated,
        measured=worst.noise.cell_sd or 0.0,
        upper=worst.noise.cell_sd_upper or 0.0,
        df=worst.df,
        blocks=worst.blocks,
        cell_seconds=cell_seconds,
        iterations=_iterations(worst, own, timed, cell_seconds),
        differs=tuple(_differs(own, study)),
    )


def _iterations(found: Analysis, study: Study, timed: Sequence[Sample], cell_seconds: float) -> int | None:
    """The number for which a boot's cost and an iteration's are in balance with their variances."""
    within, between = found.noise.within_sd, found.noise.boot_sd
    spent = [time for sample in timed if (time := _spent_ms(sample)) is not None]
    boots = len({(sample.vm, sample.label, sample.block) for sample in timed})
    if within is None or between is None or not spent:
        return None
    each_round = sum(spent) / 1000 / boots / study.design.iterations
    rounds = study.design.warmups + study.design.iterations  # a warm-up costs as much as what is timed
    overhead = max(0.0, cell_seconds - each_round * rounds)
    return iterations_recommended(overhead, each_round, within**2 / len(study.workload.sizes), between**2)


def _spent_ms(sample: Sample) -> float | None:
    """What an iteration cost: by the controller's clock where there is one."""
    return sample.elapsed_ms if sample.client_ms is None else sample.client_ms


def _differs(pilot: Study, study: Study) -> list[str]:
    pairs = (
        ("sizes", pilot.workload.sizes, study.workload.sizes),
        ("workload", pilot.workload.name, study.workload.name),
        ("first form", pilot.workload.forms[0], study.workload.forms[0]),
        ("iterations", pilot.design.iterations, study.design.iterations),
        ("vCPUs", pilot.vcpus, study.vcpus),
    )
    return [name for name, before, now in pairs if before != now]
