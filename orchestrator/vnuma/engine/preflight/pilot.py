"""A pilot: the spread, the cost of a boot and the iterations, from an earlier run of a study."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vnuma.analysis.analyse import analyse
from vnuma.analysis.planning import Costs, Spread, iteration_seconds, upper_spread
from vnuma.analysis.records import Series, design_of
from vnuma.analysis.variance import ROBUST_QUANTILE, pilot_upper
from vnuma.domain.study.study import Study
from vnuma.domain.study.study_file import parse_study
from vnuma.errors import InputError
from vnuma.store import attempts, cells, leases, runs
from vnuma.store.open import Store
from vnuma.store.rows import Outcome
from vnuma.store.timed import cell_records, timed_series

FEWEST_BLOCKS = 3


@dataclass(frozen=True)
class Pilot:
    """A run to plan with. `upper` is the upper bound of its cell SD (95%), `measured` the SD itself.

    `spreads` are the SDs between and within boots, `costs` the durations of a cell's parts; None if unknown.
    `differs`: how its study differs from the planned one.
    """

    run: str
    simulated: str | None
    measured: float
    upper: float
    df: int
    blocks: int
    cell_seconds: float
    spreads: tuple[float, float] | None
    costs: Costs | None
    differs: tuple[str, ...]

    @property
    def spread(self) -> Spread:
        """The SD to plan with. With the measured SD, only half of all pilots would lead to the
        planned power.
        """
        return Spread(f"pilot {self.run}", self.upper)


def read_pilot(store: Store, name: str, study: Study) -> Pilot:
    """Analyse a run as a pilot of `study`; of several VMs, take the one with the largest spread.

    Raises InputError for a run with fewer than 3 blocks or without a spread.
    """
    with store.read() as connection:
        run = runs.get_run(connection, name)
        own = parse_study(runs.get_study(connection, run.study_id).yaml, f"study of {run.name}")
        planned = cells.cells_of_run(connection, run.id)
        tried = attempts.lines_of_run(connection, run.id)
        names = {vm.id: vm.name for vm in leases.vms_of_run(connection, run.id)}
        timed = timed_series(connection, run.id)
    result = analyse(
        timed, cell_records(planned, tried, names), design_of(own, {cell.label for cell in planned})
    )
    usable = [item for item in result.primary if item.noise.cell_sd and item.blocks >= FEWEST_BLOCKS]
    if not usable:
        raise InputError(
            f"{run.name} has no VM with at least {FEWEST_BLOCKS} blocks, so its spread is unknown.",
            fix="Run more blocks, or omit --pilot to plan with assumed variances.",
        )
    worst = max(usable, key=lambda item: item.noise.cell_sd_upper or 0.0)
    cell_seconds = statistics.median(line.seconds for line in tried if line.outcome is Outcome.VALID)
    sd = worst.noise.cell_sd or 0.0
    upper = math.sqrt(pilot_upper(sd**2, worst.df, ROBUST_QUANTILE))
    spread = replace(worst.noise, cell_sd_upper=upper)
    return Pilot(
        run=run.name,
        simulated=run.simulated,
        measured=sd,
        upper=upper,
        df=worst.df,
        blocks=worst.blocks,
        cell_seconds=cell_seconds,
        spreads=upper_spread(spread, own.design.iterations, len(own.workload.sizes)),
        costs=_costs(own, timed, worst.vm, cell_seconds),
        differs=tuple(_differs(own, study)),
    )


def _costs(study: Study, timed: Sequence[Series], vm: str, cell_seconds: float) -> Costs | None:
    design = study.design
    once = iteration_seconds(timed, design.iterations).get(vm)
    return None if once is None else Costs.measured(cell_seconds, once, design.warmups, design.iterations)


def _differs(pilot: Study, study: Study) -> list[str]:
    pairs = (
        ("sizes", pilot.workload.sizes, study.workload.sizes),
        ("workload", pilot.workload.name, study.workload.name),
        ("first form", pilot.workload.forms[0], study.workload.forms[0]),
        ("iterations", pilot.design.iterations, study.design.iterations),
        ("vCPUs", pilot.vcpus, study.vcpus),
    )
    return [name for name, before, now in pairs if before != now]
