"""The parts of the published schema that decide nothing: published figures, and what else was measured."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from vnuma.report.export.schema_types import Count, Limits, Reason


class PublishedPart(BaseModel):
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
        description="What that ratio is where a lower bound was published; null: the ratio itself."
    )
    ratio: float | None
    interval: Limits
    prediction_95: Limits = Field(description="Where the ratio of one more boot each lies in 95% of cases.")
    published_is: str | None = Field(description="Where their ratio lies, by `prediction_95`.")
    reason: Reason


class PublishedFigures(BaseModel):
    """Somebody else's figures."""

    title: str
    source: str
    rows: list[PublishedPart]


class WaitPart(BaseModel):
    """One wait type."""

    type: str
    share: float = Field(description="Wait time / elapsed time; above 1 when several workers wait at once.")


class WaitsPart(BaseModel):
    """What one form of a VM waited for, largest first."""

    vm: str
    form: str
    arm: str | None = Field(description="null: all arms together.")
    shares: list[WaitPart] | None
    reason: Reason


class FigureArm(BaseModel):
    """One arm's median of boot medians."""

    arm: str
    boots: Count
    median: float | None
    ratio: float | None = Field(
        description="The median / the reference arm's; null where that is 0 or not known."
    )
    published_ratio: float | None = Field(
        description="The same of somebody else's figures; null without any."
    )
    reason: Reason


class FigurePart(BaseModel):
    """What samples told beside their metric, at one size. Not used for the verdict."""

    vm: str
    form: str
    size: Count
    name: str
    unit: str
    better: Literal["lower", "higher"]
    arms: list[FigureArm]


class ScalingPart(BaseModel):
    """A throughput along one load, over vCPUs at a size or sizes in an arm. Not used for the verdict."""

    vm: str
    form: str
    over: str = Field(description="What grows: vCPUs, or what a size counts.")
    at: str = Field(description="The size, or the arm.")
    unit: str
    points: list[tuple[int, float]] = Field(description="Load and median of boot medians, in order of load.")
    peak: int
    lower: list[int] = Field(description="Loads whose rate is 5% or more below the best at a smaller one.")
    negative: list[int] = Field(
        description=(
            "Those of them at which a loss is shown: by paired one-sided intervals that hold for all pairs "
            "of the curve's loads together at 95%, on 6 boots or more."
        )
    )
    worst_loss: float = Field(description="The largest loss against the best at a smaller load, as a share.")
    reason: Reason = Field(description="Why some of `lower` are not `negative`; null where all are.")
