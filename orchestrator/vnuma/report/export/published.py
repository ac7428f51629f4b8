"""Other people's figures in the results document, with ours."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field

from vnuma.domain.workloads.replicate import none_valid
from vnuma.report.export.parts import Limits, Part, Reason, limits
from vnuma.report.model.model import LoadedRun
from vnuma.report.published.published_comparison import PublishedRow, published_rows


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
            interval=limits(verdict.interval) if verdict else None,
            prediction_95=limits(verdict.prediction) if verdict else None,
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
        published, result = loaded.published, loaded.result
        if published is None:
            return None
        declared = [a for a in result.analyses if a.measure == result.design.measure(a.form)]
        return cls(
            title=published.title,
            source=published.source,
            rows=[PublishedPart.of(a.vm, row) for a in declared for row in published_rows(a, loaded.study)],
        )
