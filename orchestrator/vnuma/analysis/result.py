"""The results of an analysis: plain frozen values, unrounded, for tables, pages and JSON."""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.analysis.cells import Missing
from vnuma.analysis.checks import AaCheck, ControlCheck, Drift, FirstIteration
from vnuma.analysis.compare import Contrast
from vnuma.analysis.fit import GateFlag
from vnuma.analysis.growth import Growth
from vnuma.analysis.outliers import Bimodality, OddCell
from vnuma.analysis.records import AnalysisDesign, Key, Measure, NotEvaluated
from vnuma.analysis.table import FigureRow, TableRow
from vnuma.analysis.variance import Noise
from vnuma.analysis.verdict import Verdict, Withheld
from vnuma.domain.workloads.metric import Replicate


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
