"""Types that the parts of the published schema share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Limits = Annotated[tuple[float, float] | None, Field(description="Lower and upper limit; null: unknown.")]
Reason = Annotated[str | None, Field(description="Why a field beside it is null; null when none is.")]
Utc = Annotated[
    str | None, Field(description="UTC, ISO 8601; null: not yet.", examples=["2026-11-17T20:14:00Z"])
]
Count = Annotated[int, Field(ge=0)]
