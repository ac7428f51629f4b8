"""Checks of an analysis, as in the results document."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field

from vnuma.analysis.drift import Drift, Slope
from vnuma.analysis.growth import Growth
from vnuma.analysis.instrument_checks import AaCheck, ControlCheck
from vnuma.analysis.outliers import Bimodality
from vnuma.analysis.records import NotEvaluated
from vnuma.report.export.parts import Limits, Part, Reason, limits


class Detectable(Part):
    """The difference that this many blocks likely (80%) detect at the upper bound of the SD: 0.01 is 1%."""

    value: float | None
    reason: Reason

    @classmethod
    def of(cls, value: float | NotEvaluated) -> Self:
        """The value, or null with the reason."""
        if isinstance(value, NotEvaluated):
            return cls(value=None, reason=value.reason)
        return cls(value=value, reason=None)


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
        if isinstance(check, NotEvaluated):
            return cls(state=None, reason=check.reason)
        return cls.like(check, interval_95=limits(check.interval), reason=None)


class ControlPart(Part):
    """The positive control: an arm whose effect is known."""

    arm: str | None = None
    expected: Literal["slower", "faster"] | None = None
    passed: bool | None
    reason: Reason

    @classmethod
    def of(cls, check: ControlCheck | NotEvaluated) -> Self:
        """The positive control, or why there is none."""
        if isinstance(check, NotEvaluated):
            return cls(passed=None, reason=check.reason)
        return cls.like(check, reason=None)


class SlopePart(Part):
    """A trend of ln(figure)."""

    slope: float | None = Field(description="Per block, or per place within a block: 0.001 is 0.1%.")
    p: float | None = None
    alarm: bool | None = None
    reason: Reason

    @classmethod
    def of(cls, slope: Slope | NotEvaluated) -> Self:
        """The trend, or why it was not evaluated."""
        if isinstance(slope, NotEvaluated):
            return cls(slope=None, reason=slope.reason)
        return cls.like(slope, reason=None)


class DriftPart(Part):
    """Did time itself leave a trace?"""

    between_blocks: SlopePart | None
    within_blocks: SlopePart | None
    reason: Reason = None

    @classmethod
    def of(cls, found: Drift | NotEvaluated) -> Self:
        """Both trends, or why they were not evaluated."""
        if isinstance(found, NotEvaluated):
            return cls(between_blocks=None, within_blocks=None, reason=found.reason)
        return cls(
            between_blocks=SlopePart.of(found.between_blocks), within_blocks=SlopePart.of(found.within_blocks)
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
        return cls.like(item, interval_95=limits(item))


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

    @classmethod
    def of(cls, found: Bimodality | NotEvaluated) -> Self:
        """The best split, or why there is none."""
        if isinstance(found, NotEvaluated):
            return cls(share=None, critical=None, flagged=None, reason=found.reason)
        return cls.like(found, reason=None)
