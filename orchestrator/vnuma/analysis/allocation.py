"""Boots or iterations: the cheapest way to intervals of a given width, from the cost of each.

T. Kalibera and R. Jones 2013, "Rigorous benchmarking in reasonable time", ISMM: more iterations reduce only
the variance within boots. The widths are those of the comparison rule itself, simulated.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from vnuma.analysis.power import blocks_for_width
from vnuma.analysis.records import AnalysisDesign, Sample
from vnuma.analysis.variance import Noise, cell_sd, median_variance

ITERATIONS = (3, 5, 7)
"""A single iteration has no protection against a slow one; beyond seven a median gains little."""


@dataclass(frozen=True)
class Costs:
    """Seconds of one cell: `boot` for whatever is measured, `iteration` for a pass over all sizes
    and forms.
    """

    boot: float
    iteration: float
    warmups: int

    def cell(self, iterations: int) -> float:
        """A whole cell; a warm-up costs as much as a timed iteration."""
        return self.boot + self.iteration * (self.warmups + iterations)

    @classmethod
    def measured(cls, cell: float, iteration: float, warmups: int, iterations: int) -> Costs:
        """From the seconds of a cell with that many iterations."""
        return cls(max(0.0, cell - iteration * (warmups + iterations)), iteration, warmups)


@dataclass(frozen=True)
class Allocation:
    """The number of iterations per boot and of blocks; `hours` on one VM, all columns."""

    iterations: int
    blocks: int
    hours: float


@dataclass(frozen=True)
class Plans:
    """Allocations, cheapest first, whose 95% half-widths are all likely (80%) at most `width`: 0.01 is 1%.

    Empty if more than 200 blocks would be needed.
    """

    width: float
    choices: tuple[Allocation, ...]


def wanted_width(design: AnalysisDesign, precision: float | None) -> float:
    """The declared precision; else the equivalence band, in which wider intervals cannot lie."""
    return precision or design.equivalence


def allocate(design: AnalysisDesign, width: float, spread: tuple[float, float], costs: Costs) -> Plans:
    """`spread`: SDs between boots and of an iteration within its boot, on the ln scale."""
    arms, references = len(design.compared), len(design.reference_labels)
    found = []
    for iterations in ITERATIONS:
        sigma = cell_sd(*spread, iterations, len(design.sizes))
        blocks = blocks_for_width(width, sigma, arms, references) if arms else None
        if blocks is not None:
            hours = blocks * len(design.columns) * costs.cell(iterations) / 3600
            found.append(Allocation(iterations, blocks, hours))
    return Plans(width, tuple(sorted(found, key=lambda one: (one.hours, one.blocks))))


def upper_spread(noise: Noise, iterations: int, sizes: int) -> tuple[float, float] | None:
    """The components to plan with: the upper bound's addition to a cell's SD is put between boots.

    None without components. `iterations` and `sizes` are those that were run.
    """
    if noise.cell_sd_upper is None or noise.within_sd is None or noise.boot_sd is None:
        return None
    within = median_variance(iterations) * noise.within_sd**2 / sizes
    return math.sqrt(max(0.0, noise.cell_sd_upper**2 - within)), noise.within_sd


def iteration_seconds(samples: Iterable[Sample], iterations: int) -> dict[str, float]:
    """By VM, the duration of one pass over all sizes and forms, by the controller's clock if available."""
    spent: dict[str, dict[tuple[str, int], float]] = defaultdict(lambda: defaultdict(float))
    for sample in samples:
        took = sample.elapsed_ms if sample.client_ms is None else sample.client_ms
        if took is not None and not sample.warmup:
            spent[sample.vm][sample.label, sample.block] += took / 1000 / iterations
    return {vm: statistics.fmean(boots.values()) for vm, boots in spent.items()}
