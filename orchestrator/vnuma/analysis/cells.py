"""From iterations to cells: boot medians, the cell value, and the grid of blocks by columns.

The boot is the replicate: a cell gives one number, ln(median of its timed iterations), averaged over sizes.
Iterations are never replicates (pseudo-replication: 19 to 73% false positives).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from vnuma.analysis.distributions import FloatArray
from vnuma.analysis.records import AnalysisDesign, CellRecord, Measure, Series
from vnuma.analysis.rounding import ClockStep, clock_steps

# A block whose cells are all in these states was never started.
NOT_BEGUN = ("pending", "skipped")
YET_TO_RUN = "not run"
"""The reason for a cell that the run has not reached, or is running."""


@dataclass(frozen=True)
class Boot:
    """One analysed cell: its timed iterations and their median, by size in the design's order.

    `sentinel_ms` is the median of the drift sentinel's times; None without any.
    """

    label: str
    arm: str
    block: int
    position: int | None
    iterations: tuple[tuple[float, ...], ...]
    sentinel_ms: float | None = None

    @cached_property
    def medians(self) -> tuple[float, ...]:
        """The boot's summary for each size: the median of its timed iterations."""
        return tuple(statistics.median(values) for values in self.iterations)

    @cached_property
    def log_mean(self) -> float:
        """The cell value Y: mean over sizes of ln(median)."""
        return statistics.fmean([math.log(median) for median in self.medians])


@dataclass(frozen=True)
class Missing:
    """A cell without a value, and why. `to_run`: the run has yet to run or repeat it."""

    label: str
    block: int
    outcome: str
    reason: str
    to_run: bool = False


@dataclass(frozen=True)
class Cells:
    """The cells of one VM, form and measure: those with a value, those without, and blocks never started.

    `ended_by` is the declared rule's reason for ending early; the blocks it left out are not counted.
    `left_out` are labels without planned cells on this VM, which are not missing. `complete` counts the
    blocks in which every cell that was to run has a value; `finished` those before the first block with a
    cell yet to run. `left_after` has the block after which a rule gave up a label's further cells. `steps`:
    those of the sizes' figures.
    """

    boots: tuple[Boot, ...]
    missing: tuple[Missing, ...]
    blocks_not_begun: int
    ended_by: str = ""
    left_out: frozenset[str] = frozenset()
    complete: int = 0
    finished: int = 0
    left_after: Mapping[str, int] = field(default_factory=dict)
    steps: tuple[ClockStep, ...] = ()

    @property
    def at_declared_end(self) -> bool:
        """Whether every declared cell was run, or given up by a declared rule."""
        return not self.blocks_not_begun and not any(cell.to_run for cell in self.missing)


@dataclass(frozen=True, eq=False)
class Grid:
    """Cell values, one row per block and one column per label; NaN where a cell is missing.

    `x[block, column, term]`: declared covariates of each cell, such as its place in the block; None without
    any.
    """

    labels: tuple[str, ...]
    blocks: tuple[int, ...]
    y: FloatArray
    x: FloatArray | None = None

    @cached_property
    def columns(self) -> dict[str, list[float]]:
        """By label, all blocks of the column."""
        return dict(zip(self.labels, self.y.T.tolist(), strict=True))

    def only(self, labels: Iterable[str]) -> Grid:
        """The grid of some columns, without empty blocks."""
        kept = set(labels)
        keep = [i for i, label in enumerate(self.labels) if label in kept]
        y = self.y[:, keep]
        rows = np.flatnonzero(~np.isnan(y).all(axis=1))
        x = None if self.x is None else self.x[:, keep][rows]
        return Grid(tuple(self.labels[i] for i in keep), tuple(self.blocks[i] for i in rows), y[rows], x)

    def at(self, x: FloatArray | None) -> Grid:
        """The same cells with these covariates."""
        return Grid(self.labels, self.blocks, self.y, x)

    def of(self, y: FloatArray) -> Grid:
        """Other values of the same cells, without covariates."""
        return Grid(self.labels, self.blocks, y)

    def without(self, label: str) -> Grid:
        """The grid without one column."""
        return self.only(other for other in self.labels if other != label)


@lru_cache(maxsize=16)
def arm_of(cells: Grid, labels: tuple[str, ...]) -> list[tuple[float, int]]:
    """By block, the mean of an arm's columns there, and how many there are; NaN without any."""
    rows = zip(*(cells.columns[label] for label in labels), strict=True)
    known = [[value for value in row if not math.isnan(value)] for row in rows]
    return [(sum(row) / len(row) if row else math.nan, len(row)) for row in known]


def collect(
    series: Iterable[Series],
    cells: Sequence[CellRecord],
    design: AnalysisDesign,
    *,
    vm: str,
    form: str,
    measure: Measure,
) -> Cells:
    """The cells of one VM, form and measure. Raises ValueError if a cell has two series at one size."""
    found: dict[tuple[str, int, int], tuple[float, ...]] = {}
    for one in series:
        if (one.vm, one.form) == (vm, form):
            if (place := (one.label, one.block, one.size)) in found:
                raise ValueError(f"two series for {one.label}, block {one.block}, size {one.size}")
            found[place] = one.measured(measure.key)
    records = {(cell.label, cell.block): cell for cell in cells if cell.vm == vm}
    begun = {cell.block for cell in records.values() if cell.outcome not in NOT_BEGUN}
    planned = {label for label, _ in records}
    unplanned = frozenset(item.label for item in design.columns if planned and item.label not in planned)
    boots: list[Boot] = []
    missing: list[Missing] = []
    for block in sorted(begun):
        for column in (item for item in design.columns if item.label not in unplanned):
            record = records.get((column.label, block))
            if record is not None and record.outcome == "skipped":
                continue
            if record is None or record.outcome != "valid":
                missing.append(_not_valid(column.label, block, record))
                continue
            values = tuple(found.get((column.label, block, size), ()) for size in design.sizes)
            flaw = _flaw(values, design.sizes, measure)
            if flaw:
                missing.append(Missing(column.label, block, "not measured", flaw))
            else:
                watched = statistics.median(record.sentinel_ms) if record.sentinel_ms else None
                boots.append(Boot(column.label, column.arm, block, record.position, values, watched))
    skipped = [cell for cell in records.values() if cell.outcome == "skipped"]
    # The reference is in every block that runs: without it, a block was given up as a whole.
    given_up = {
        cell.block: cell.reason
        for cell in skipped
        if cell.block not in begun and cell.arm == design.reference
    }
    not_begun = set(range(1, design.blocks + 1)) - begun - given_up.keys()
    waiting = min((cell.block for cell in missing if cell.to_run), default=len(begun) + 1)
    return Cells(
        tuple(boots),
        tuple(missing),
        len(not_begun),
        next(iter(given_up.values()), ""),
        unplanned,
        len(begun - {cell.block for cell in missing}),
        min(waiting - 1, len(begun)),
        {
            label: min(cell.block for cell in skipped if cell.label == label) - 1
            for label in {cell.label for cell in skipped}
        },
        steps_of(boots, design),
    )


def grid(boots: Iterable[Boot], labels: Sequence[str], value: Callable[[Boot], float]) -> Grid:
    """The grid of `value` over blocks and the columns that have at least one cell."""
    by_cell = {(boot.block, boot.label): value(boot) for boot in boots}
    blocks = tuple(sorted({block for block, _ in by_cell}))
    present = tuple(label for label in labels if any((block, label) in by_cell for block in blocks))
    y = np.array([[by_cell.get((block, label), math.nan) for label in present] for block in blocks])
    return Grid(present, blocks, y.reshape(len(blocks), len(present)))


def steps_of(boots: Sequence[Boot], design: AnalysisDesign) -> tuple[ClockStep, ...]:
    """The step of every timed figure of each size."""
    places = range(len(design.sizes))
    figures = ([x for boot in boots for x in boot.iterations[index]] for index in places)
    return clock_steps(figures, printed=design.printed)


def _not_valid(label: str, block: int, record: CellRecord | None) -> Missing:
    if record is None or record.outcome == "pending":
        return Missing(label, block, YET_TO_RUN, "the run has not reached this cell", to_run=True)
    if record.outcome == "claimed":
        return Missing(label, block, YET_TO_RUN, "the cell is being run", to_run=True)
    reason = record.reason or "no reason was stored"
    return Missing(label, block, record.outcome, reason, to_run=record.tried_again)


def _flaw(values: Sequence[Sequence[float]], sizes: Sequence[int], measure: Measure) -> str:
    """Why a valid cell has no value, or "". One missing size makes the whole cell missing."""
    for size, figures in zip(sizes, values, strict=True):
        if not figures:
            return f"no {measure.name} at size {size}"
        if min(figures) <= 0 and statistics.median(figures) <= 0:
            short = ": too short for the clock, use larger sizes" if measure.unit == "ms" else ""
            return f"the median at size {size} is 0 {measure.unit}{short}"
    return ""
