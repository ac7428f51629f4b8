"""Other measurements in the results document: waits, a workload's other figures, scaling, published ones."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field

from vnuma.analysis.result import FigureRow
from vnuma.domain.workloads.metric import none_valid
from vnuma.report.export.parts import Count, Limits, Part, Reason
from vnuma.report.model.executions import WaitShare
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.scaling import Curve
from vnuma.report.published.published_comparison import PublishedRow, published_rows
from vnuma.report.tables.secondary import NO_FIGURE, NO_WAITS, published_ratios, to_reference_arm


class WaitPart(Part):
    """One wait type."""

    type: str
    share: float = Field(description="Wait time / elapsed time; above 1 when several workers wait at once.")


class WaitsPart(Part):
    """What one form of a VM waited for, largest first."""

    vm: str
    form: str
    arm: str | None = Field(description="null: all arms together.")
    shares: list[WaitPart] | None
    reason: Reason

    @classmethod
    def of(cls, item: WaitShare) -> Self:
        """Every wait type."""
        known = item.shares is not None
        return cls.like(
            item,
            shares=[WaitPart(type=name, share=share) for name, share in item.shares or ()] if known else None,
            reason=None if known else NO_WAITS,
        )


class FigureArm(Part):
    """One arm's median of boot medians."""

    arm: str
    boots: Count
    median: float | None
    ratio: float | None = Field(
        description="The median / the reference arm's; null where that is 0 or not known."
    )
    published_ratio: float | None = Field(description="The same for published figures; null without any.")
    reason: Reason


class FigurePart(Part):
    """What samples told beside their metric, at one size. Not used for the verdict."""

    vm: str
    form: str
    size: Count
    name: str
    unit: str
    better: Literal["lower", "higher"]
    arms: list[FigureArm]

    @classmethod
    def of(cls, row: FigureRow, loaded: LoadedRun) -> Self:
        """One figure at one size."""
        theirs = published_ratios(loaded, row)
        return cls.like(
            row,
            name=row.metric.name,
            unit=row.metric.unit,
            better=row.metric.better,
            arms=[
                FigureArm.like(
                    cell,
                    ratio=to_reference_arm(row, cell),
                    published_ratio=theirs.get(cell.arm),
                    reason=None if cell.boots else NO_FIGURE,
                )
                for cell in row.cells
            ],
        )


class ScalingPart(Part):
    """A throughput along one load, over vCPUs at a size or sizes in an arm. Not used for the verdict."""

    vm: str
    form: str
    over: str = Field(description="What grows: vCPUs, or what a size counts.")
    at: str = Field(description="The size, or the arm.")
    unit: str
    points: tuple[tuple[int, float], ...] = Field(
        description="Load and median of boot medians, in order of load."
    )
    peak: int
    lower: tuple[int, ...] = Field(
        description="Loads whose rate is 5% or more below the best at a smaller one."
    )
    negative: tuple[int, ...] = Field(
        description=(
            "Those of them at which a loss is shown: by paired one-sided intervals that hold for all pairs "
            "of the curve's loads together at 95%, on 6 boots or more."
        )
    )
    worst_loss: float = Field(description="The largest loss against the best at a smaller load, as a share.")
    reason: Reason = Field(description="Why some of `lower` are not `negative`; null where all are.")

    @classmethod
    def of(cls, vm: str, curve: Curve) -> Self:
        """One curve of a VM."""
        found = curve.found
        return cls.like(
            curve,
            vm=vm,
            points=found.points,
            peak=found.peak,
            lower=found.lower,
            negative=curve.negative,
            worst_loss=found.worst_loss(tuple(load for load, _ in found.points)),
            reason=curve.unshown or None,
        )


class PublishedPart(Part):
    """One published figure or ratio, ours beside it."""

    vm: str
    form: str
    size: int | None = Field(description="null: over all sizes.")
    arm: str
    unit: str
    published: float | None = Field(description="Their figure; null: only a ratio was published.")
    measured: float | None = Field(description="Our median.")
    published_ratio: float | None = Field(description="To the study's reference arm.")
    published_bound: Literal["at most", "at least"] | None = Field(
        description="The ratio's kind where a lower bound was published; null: the ratio itself."
    )
    ratio: float | None
    interval: Limits
    prediction_95: Limits = Field(description="Where the ratio of one more boot each lies in 95% of cases.")
    published_is: str | None = Field(description="Where their ratio lies, by `prediction_95`.")
    reason: Reason

    @classmethod
    def of(cls, vm: str, row: PublishedRow) -> Self:
        """One row of the comparison."""
        verdict = row.verdict
        return cls.like(
            row,
            vm=vm,
            published=row.theirs,
            measured=row.ours,
            published_ratio=row.their_ratio,
            published_bound=row.bound,
            ratio=verdict.ratio if verdict else None,
            interval=verdict.interval if verdict else None,
            prediction_95=verdict.prediction if verdict else None,
            published_is=row.where or None,
            reason=_why(row),
        )


def _why(row: PublishedRow) -> str | None:
    """Why a field of a row is null, if one is."""
    if row.verdict is None:
        return "the reference arm"
    if row.theirs is None:
        return "only a ratio was published"
    if row.ours is not None and row.their_ratio is not None:
        return None
    return f"{none_valid(row.replicate)}, or no published reference"


class PublishedFigures(Part):
    """Somebody else's figures."""

    title: str
    source: str
    rows: list[PublishedPart]

    @classmethod
    def of(cls, loaded: LoadedRun) -> Self | None:
        """The study's; None if it has none."""
        published, result = loaded.study.published, loaded.result
        if published is None:
            return None
        declared = [a for a in result.analyses if a.measure == result.design.measure(a.form)]
        return cls(
            title=published.title,
            source=published.source,
            rows=[PublishedPart.of(a.vm, row) for a in declared for row in published_rows(a, loaded.study)],
        )
