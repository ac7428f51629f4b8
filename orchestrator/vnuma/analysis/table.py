"""Table 1: what was measured, per size and arm, in ms. Description only; the verdicts are elsewhere."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from vnuma.analysis.cells import Boot
from vnuma.analysis.compare import Contrast, Interval
from vnuma.analysis.records import AnalysisDesign


@dataclass(frozen=True)
class TableCell:
    """One arm at one size. The reference's columns are taken together: twice the boots with A/A.

    `low_ms` to `high_ms` is the range of boot medians, which covers the median boot with probability
    `coverage` = 1 - 2^(1-n); `mad_ms` is the median distance from the median (not scaled).
    `median_ratio` is this median over the reference's; `ratio` and `interval` are the within-block
    comparison at this size, at the level of the sizes together (1 - 0.05/S), and `difference_ms` is
    that ratio times the reference's median, so that ms and percent agree. All are None when missing.
    """

    arm: str
    boots: int
    median_ms: float | None
    low_ms: float | None
    high_ms: float | None
    coverage: float | None
    mad_ms: float | None
    median_ratio: float | None
    ratio: float | None
    interval: Interval | None
    difference_ms: float | None


@dataclass(frozen=True)
class TableRow:
    """One size, rows a side, with the reference first and the arms in the order of the study."""

    size: int
    cells: tuple[TableCell, ...]


def table_row(
    index: int, boots: Sequence[Boot], design: AnalysisDesign, contrasts: Sequence[Contrast]
) -> TableRow:
    """The row of `design.sizes[index]`; `contrasts` are the comparisons at that size."""
    base = _medians(index, boots, design.reference)
    reference_ms = statistics.median(base) if base else None
    cells = [_cell(design.reference, base, reference_ms, None)]
    cells += [_cell(item.arm, _medians(index, boots, item.arm), reference_ms, item) for item in contrasts]
    return TableRow(design.sizes[index], tuple(cells))


def range_coverage(n: int) -> float:
    """P(the median lies between the smallest and the largest of n independent values) = 1 - 2^(1-n)."""
    return 1.0 - 2.0 ** (1 - n)


def _medians(index: int, boots: Sequence[Boot], arm: str) -> list[float]:
    return [boot.medians_ms[index] for boot in boots if boot.arm == arm]


def _cell(
    arm: str, medians: Sequence[float], reference_ms: float | None, contrast: Contrast | None
) -> TableCell:
    ratio = contrast.ratio if contrast else None
    inference = contrast.inference if contrast else None
    difference = None if ratio is None or reference_ms is None else (ratio - 1) * reference_ms
    interval = inference.interval if inference else None
    if not medians:
        return TableCell(arm, 0, None, None, None, None, None, None, ratio, interval, difference)
    median = statistics.median(medians)
    return TableCell(
        arm=arm,
        boots=len(medians),
        median_ms=median,
        low_ms=min(medians),
        high_ms=max(medians),
        coverage=range_coverage(len(medians)),
        mad_ms=statistics.median(abs(x - median) for x in medians),
        median_ratio=None if reference_ms is None else median / reference_ms,
        ratio=ratio,
        interval=interval,
        difference_ms=difference,
    )
