"""Table 1 and the iterations' other figures: medians per size and arm, with unit, without verdicts."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vnuma.analysis.cells import Boot
from vnuma.analysis.compare import Contrast
from vnuma.analysis.records import AnalysisDesign, CellRecord, Series
from vnuma.domain.workloads.metric import Metric


@dataclass(frozen=True)
class TableCell:
    """One arm at one size. The reference's columns are merged: twice the boots with A/A.

    `low` to `high` is the range of boot medians, which covers the median boot with probability `coverage` = 1
    - 2^(1-n); `mad` is the median distance from the median (not scaled). `ratio` is the within-block
    comparison at this size, and `difference` is that ratio times the reference's median, so that it and
    percent agree. All are None when missing.
    """

    arm: str
    boots: int
    median: float | None
    low: float | None
    high: float | None
    coverage: float | None
    mad: float | None
    ratio: float | None
    difference: float | None


@dataclass(frozen=True)
class TableRow:
    """One size, with the reference first and the arms in the order of the study."""

    size: int
    cells: tuple[TableCell, ...]


def table_row(
    index: int, boots: Sequence[Boot], design: AnalysisDesign, contrasts: Sequence[Contrast]
) -> TableRow:
    """The row of `design.sizes[index]`; `contrasts` are the comparisons at that size."""
    base = _medians(index, boots, design.reference)
    reference = statistics.median(base) if base else None
    cells = [_cell(design.reference, base, reference, None)]
    cells += [_cell(item.arm, _medians(index, boots, item.arm), reference, item) for item in contrasts]
    return TableRow(design.sizes[index], tuple(cells))


def range_coverage(n: int) -> float:
    """P(the median lies between the smallest and the largest of n independent values) = 1 - 2^(1-n)."""
    return 1.0 - 2.0 ** (1 - n)


def _medians(index: int, boots: Sequence[Boot], arm: str) -> list[float]:
    return [boot.medians[index] for boot in boots if boot.arm == arm]


def _cell(
    arm: str, medians: Sequence[float], reference: float | None, contrast: Contrast | None
) -> TableCell:
    ratio = contrast.ratio if contrast else None
    difference = None if ratio is None or reference is None else (ratio - 1) * reference
    if not medians:
        return TableCell(arm, 0, None, None, None, None, None, ratio, difference)
    median = statistics.median(medians)
    return TableCell(
        arm=arm,
        boots=len(medians),
        median=median,
        low=min(medians),
        high=max(medians),
        coverage=range_coverage(len(medians)),
        mad=statistics.median(abs(x - median) for x in medians),
        ratio=ratio,
        difference=difference,
    )


@dataclass(frozen=True)
class FigureCell:
    """One arm: the median of its boots' medians, None without a boot that has the figure."""

    arm: str
    boots: int
    median: float | None


@dataclass(frozen=True)
class FigureRow:
    """One figure of one VM, form and size, with arms in the design's order (A/A merged into its arm)."""

    vm: str
    form: str
    size: int
    metric: Metric
    cells: tuple[FigureCell, ...]


def figure_rows(
    series: Iterable[Series], cells: Sequence[CellRecord], design: AnalysisDesign, *, vm: str, form: str
) -> tuple[FigureRow, ...]:
    """Every declared figure that some series of the VM and form has, size by size."""
    valid = {(cell.label, cell.block) for cell in cells if cell.vm == vm and cell.outcome == "valid"}
    found: dict[tuple[str, int, str], dict[tuple[str, int], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for one in series:
        if (boot := (one.label, one.block)) in valid:
            for figures in filter(None, one.figures):
                for name, figure in figures.items():
                    found[name, one.size, one.arm][boot].append(figure)
    arms = tuple(dict.fromkeys(column.arm for column in design.columns))
    return tuple(
        FigureRow(
            vm, form, size, metric, tuple(_figure_cell(arm, found[metric.name, size, arm]) for arm in arms)
        )
        for metric in design.figures
        for size in design.sizes
        if any((metric.name, size, arm) in found for arm in arms)
    )


def _figure_cell(arm: str, boots: dict[tuple[str, int], list[float]]) -> FigureCell:
    medians = [statistics.median(values) for values in boots.values()]
    return FigureCell(arm, len(medians), statistics.median(medians) if medians else None)
