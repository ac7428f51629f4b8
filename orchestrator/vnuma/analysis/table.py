"""Table 1: measured figures per size and arm, with unit. Description only, without verdicts."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from vnuma.analysis.cells import Boot
from vnuma.analysis.compare import Contrast, Interval
from vnuma.analysis.records import AnalysisDesign


@dataclass(frozen=True)
class TableCell:
    """One arm at one size. The reference's columns are merged: twice the boots with A/A.

    `low` to `high` is the range of boot medians, which covers the median boot with probability `coverage` = 1
    - 2^(1-n); `mad` is the median distance from the median (not scaled). `ratio` and `interval` are the
    within-block comparison at this size, at the level of the sizes together (1 - 0.05/S), and `difference` is
    that ratio times the reference's median, so that it and percent agree. All are None when missing.
    """

    arm: str
    boots: int
    median: float | None
    low: float | None
    high: float | None
    coverage: float | None
    mad: float | None
    ratio: float | None
    interval: Interval | None
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
    inference = contrast.inference if contrast else None
    difference = None if ratio is None or reference is None else (ratio - 1) * reference
    interval = inference.interval if inference else None
    if not medians:
        return TableCell(arm, 0, None, None, None, None, None, ratio, interval, difference)
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
        interval=interval,
        difference=difference,
    )
