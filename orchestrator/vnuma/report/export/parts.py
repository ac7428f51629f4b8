"""The base of the results document's parts, and the parts that hold an analysis' checks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from vnuma.analysis.checks import AaCheck, Drift
from vnuma.analysis.compare import Interval
from vnuma.analysis.growth import Growth
from vnuma.analysis.rank import RankEstimate
from vnuma.analysis.records import NotEvaluated
from vnuma.analysis.verdict import Label


class Part(BaseModel):
    """A part of the document."""

    @classmethod
    def like(cls, source: object, **others: Any) -> Self:
        """Copy the source's attributes named like fields, and set the other fields."""
        same = {name: getattr(source, name) for name in cls.model_fields if hasattr(source, name)}
        return cls(**(same | others))

    @classmethod
    def of_check(cls, check: object, **others: Any) -> Self:
        """The same without a reason; for a check that was not evaluated, its reason and nulls."""
        if not isinstance(check, NotEvaluated):
            return cls.like(check, reason=None, **others)
        nulls = dict.fromkeys(name for name, field in cls.model_fields.items() if field.is_required())
        return cls(**(nulls | {"reason": check.reason}))


def _limits(of: Interval | RankEstimate | Growth | Sequence[float] | None) -> Sequence[float] | None:
    if of is None or isinstance(of, Sequence):
        return of
    return None if of.low is None or of.high is None else (of.low, of.high)


def _utc(moment: datetime | str | None) -> str | None:
    if isinstance(moment, datetime):
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return moment


Limits = Annotated[
    tuple[float, float] | None,
    BeforeValidator(_limits),
    Field(description="Lower and upper limit; null: unknown."),
]
"""Made of an interval, or of an estimate that has one."""
Utc = Annotated[
    str | None,
    BeforeValidator(_utc),
    Field(description="UTC, ISO 8601; null: not yet.", examples=["2026-11-17T20:14:00Z"]),
]
"""Made of a moment, in whole seconds."""
Reason = Annotated[str | None, Field(description="Why a field beside it is null; null when none is.")]
Count = Annotated[int, Field(ge=0)]
Number = Annotated[int | float, WithJsonSchema({"type": "number"})]
VerdictWord = Annotated[
    Label, WithJsonSchema({"enum": [str(word) for word in Label], "title": "Verdict", "type": "string"})
]


class Detectable(Part):
    """The difference that this many blocks likely (80%) detect at the upper bound of the SD: 0.01 is 1%."""

    value: float | None
    reason: Reason

    @classmethod
    def of(cls, value: float | NotEvaluated) -> Self:
        """The value, or null with the reason."""
        return cls.of_check(value, value=value)


class AaPart(Part):
    """The reference against itself."""

    state: Literal["alarm", "note", "no alarm"] | None
    ratio: float | None = None
    interval_95: Limits = None
    p: float | None = None
    noise_floor: float | None = Field(default=None, description="95% half-width as a ratio minus 1.")
    reason: Reason

    @classmethod
    def of(cls, check: AaCheck | NotEvaluated) -> Self:
        """The A/A check, or why there is none."""
        return cls.of_check(check, interval_95=None if isinstance(check, NotEvaluated) else check.interval)


class ControlPart(Part):
    """The positive control: an arm whose effect is known."""

    arm: str | None = None
    expected: Literal["slower", "faster"] | None = None
    passed: bool | None
    reason: Reason


class SlopePart(Part):
    """A trend of ln(figure)."""

    slope: float | None = Field(description="Per block, or per place within a block: 0.001 is 0.1%.")
    p: float | None = None
    alarm: bool | None = None
    reason: Reason


class DriftPart(Part):
    """Did time itself leave a trace?"""

    between_blocks: SlopePart | None
    within_blocks: SlopePart | None
    reason: Reason = None

    @classmethod
    def of(cls, found: Drift | NotEvaluated) -> Self:
        """Both trends, or why they were not evaluated."""
        if isinstance(found, NotEvaluated):
            return cls.of_check(found)
        return cls(
            between_blocks=SlopePart.of_check(found.between_blocks),
            within_blocks=SlopePart.of_check(found.within_blocks),
        )


class GatePart(Part):
    """The variance gate of one column."""

    label: str
    f: float | None = Field(description="null: nothing to divide by.")
    critical: float | None
    flagged: bool = Field(description="True: intervals of this column use their own error.")


class GrowthPart(Part):
    """How an arm's gap changes as the work doubles, in percentage points."""

    arm: str
    points: float | None
    interval_95: Limits
    adjusted_p: float | None
    trend: str
    withheld: str | None

    @classmethod
    def of(cls, item: Growth) -> Self:
        """One arm's."""
        return cls.like(item, interval_95=item)


class OddCellPart(Part):
    """A cell far from what its column and block say; kept. ln scale."""

    label: str
    block: int
    residual: float
    limit: float
    shift: float


class GroupsPart(Part):
    """Whether residuals fall into two groups."""

    share: float | None
    critical: float | None
    flagged: bool | None
    reason: Reason
