"""The results of an analysis: plain frozen values, unrounded, for tables, pages and JSON.

Table 1 and the iterations' other figures are medians per size and arm, with unit, without verdicts.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vnuma.analysis.cells import Boot, Missing
from vnuma.analysis.checks import AaCheck, ControlCheck, Drift, FirstIteration
from vnuma.analysis.compare import Contrast
from vnuma.analysis.fit import GateFlag
from vnuma.analysis.growth import Growth
from vnuma.analysis.outliers import Bimodality, OddCell
from vnuma.analysis.records import AnalysisDesign, CellRecord, Key, Measure, NotEvaluated, Series
from vnuma.analysis.variance import Noise
from vnuma.analysis.verdict import Verdict, Withheld
from vnuma.domain.workloads.metric import Metric, Replicate


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


@dataclass(frozen=True)
class ArmResult:
    """One arm against the reference, over all sizes or at one."""

    arm: str
    contrast: Contrast
    verdict: Verdict


@dataclass(frozen=True)
class SizeResult:
    """The arms at one size, each at the level 1 - 0.05/S, without the reference."""

    size: int
    arms: tuple[ArmResult, ...]


@dataclass(frozen=True)
class DifferingSize:
    """A size at which an arm's verdict differs from the overall one."""

    arm: str
    size: int
    verdict: Verdict


@dataclass(frozen=True)
class CellPoint:
    """One analysed cell for plots. `value` is exp(Y), the geometric mean over sizes.

    `from_column` is the ln distance from the mean of its own column (trend kept); `medians` and `iterations`
    follow the design's sizes.
    """

    label: str
    arm: str
    block: int
    position: int | None
    value: float
    from_column: float
    medians: tuple[float, ...]
    iterations: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Caution:
    """A typed warning: `id` is stable for scripts, `advice` is the next step."""

    id: str
    what: str
    advice: str


@dataclass(frozen=True)
class Analysis:
    """One VM, form and measure. Only the `primary` one is used for the verdict; others are exploratory.

    `blocks` counts blocks with at least one analysed cell. `at_declared_end`: no declared cell is yet to run.
    `ended_by` is the stopping rule's reason, or "". `withheld` is the reason at the top when no verdict may
    be given. `df` and `noise` are of the all-sizes fit. `replicate`: what a point is.
    """

    vm: str
    form: str
    measure: Measure
    replicate: Replicate
    primary: bool
    blocks: int
    complete_blocks: int
    blocks_not_begun: int
    at_declared_end: bool
    ended_by: str
    points: tuple[CellPoint, ...]
    missing: tuple[Missing, ...]
    table: tuple[TableRow, ...]
    arms: tuple[ArmResult, ...]
    sizes: tuple[SizeResult, ...]
    differing_sizes: tuple[DifferingSize, ...]
    growth: tuple[Growth, ...] | NotEvaluated
    a_a: AaCheck | NotEvaluated
    positive_control: ControlCheck | NotEvaluated
    gate: tuple[GateFlag, ...]
    drift: Drift | NotEvaluated
    sentinel: Drift | NotEvaluated
    first_iteration: FirstIteration | NotEvaluated
    odd_cells: tuple[OddCell, ...]
    bimodality: Bimodality | NotEvaluated
    noise: Noise
    df: int
    detectable_effect: float | NotEvaluated
    withheld: Withheld | None
    recommended: tuple[str, ...]
    cautions: tuple[Caution, ...]

    @property
    def margin(self) -> float:
        """The equivalence band as a ratio minus 1."""
        return self.arms[0].verdict.margin if self.arms else 0.01

    @property
    def metric(self) -> Key:
        """The field of the raw data that was analysed."""
        return self.measure.key

    def largest_gap(self, arm: str) -> tuple[int, float] | None:
        """The size at which an arm differs most from the reference, and the ratio there; None without any."""
        found = [(size.size, item.contrast) for size in self.sizes for item in size.arms if item.arm == arm]
        size, contrast = max(found, key=lambda entry: abs(entry[1].log_ratio or 0.0))
        return None if contrast.ratio is None else (size, contrast.ratio)


@dataclass(frozen=True)
class RunResult:
    """The complete result of a run. `analyses` are in the order VM, form, measure."""

    design: AnalysisDesign
    analyses: tuple[Analysis, ...]
    figures: tuple[FigureRow, ...] = ()

    @property
    def primary(self) -> tuple[Analysis, ...]:
        """The primary analysis of each VM."""
        return tuple(analysis for analysis in self.analyses if analysis.primary)

    def analysis(self, vm: str, form: str, metric: Key) -> Analysis | None:
        """One analysis, or None if that form and field gave no samples."""
        wanted = (vm, form, metric)
        return next((item for item in self.analyses if (item.vm, item.form, item.metric) == wanted), None)
