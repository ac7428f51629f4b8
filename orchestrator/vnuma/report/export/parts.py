"""Common base of the results document's parts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Protocol, Self

from pydantic import BaseModel, Field, WithJsonSchema

from vnuma.analysis.verdict import Label


class Part(BaseModel):
    """A part of the document."""

    @classmethod
    def like(cls, source: object, **others: Any) -> Self:
        """Copy the source's attributes named like fields, and set the other fields."""
        same = {name: getattr(source, name) for name in cls.model_fields if hasattr(source, name)}
        return cls(**(same | others))


Limits = Annotated[tuple[float, float] | None, Field(description="Lower and upper limit; null: unknown.")]
Reason = Annotated[str | None, Field(description="Why a field beside it is null; null when none is.")]
Utc = Annotated[
    str | None, Field(description="UTC, ISO 8601; null: not yet.", examples=["2026-11-17T20:14:00Z"])
]
Count = Annotated[int, Field(ge=0)]
Number = Annotated[int | float, WithJsonSchema({"type": "number"})]
VerdictWord = Annotated[
    Label, WithJsonSchema({"enum": [str(word) for word in Label], "title": "Verdict", "type": "string"})
]


class Bounded(Protocol):
    """An interval, or an estimate that has one."""

    @property
    def low(self) -> float | None:
        """The lower limit; None: unknown."""

    @property
    def high(self) -> float | None:
        """The upper limit; None: unknown."""


def limits(of: Bounded | None) -> tuple[float, float] | None:
    """Lower and upper limit."""
    return None if of is None or of.low is None or of.high is None else (of.low, of.high)


def utc(moment: datetime | None) -> str | None:
    """Whole seconds in UTC."""
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
