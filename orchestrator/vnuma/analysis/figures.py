"""The samples' other figures: described by medians, never compared, not used for the verdict."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vnuma.analysis.records import AnalysisDesign, CellRecord, Sample
from vnuma.domain.workloads.metric import Metric


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
    samples: Iterable[Sample], cells: Sequence[CellRecord], design: AnalysisDesign, *, vm: str, form: str
) -> tuple[FigureRow, ...]:
    """Every declared figure that some timed sample of the VM and form has, size by size."""
    valid = {(cell.label, cell.block) for cell in cells if cell.vm == vm and cell.outcome == "valid"}
    found: dict[tuple[str, int, str], dict[tuple[str, int], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for sample in samples:
        boot = (sample.label, sample.block)
        measured = sample.outcome == "measured" and not sample.warmup
        if sample.figures and measured and boot in valid:
            for name, figure in sample.figures.items():
                found[name, sample.size, sample.arm][boot].append(figure)
    arms = tuple(dict.fromkeys(column.arm for column in design.columns))
    return tuple(
        FigureRow(vm, form, size, metric, tuple(_cell(arm, found[metric.name, size, arm]) for arm in arms))
        for metric in design.figures
        for size in design.sizes
        if any((metric.name, size, arm) in found for arm in arms)
    )


def _cell(arm: str, boots: dict[tuple[str, int], list[float]]) -> FigureCell:
    medians = [statistics.median(values) for values in boots.values()]
    return FigureCell(arm, len(medians), statistics.median(medians) if medians else None)
