"""One thing that the doctor checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vnuma.errors import VnumaError

State = Literal["ok", "warn", "FAIL"]


@dataclass(frozen=True)
class Diagnosis:
    """How a thing stands, what it is about, what was seen, and what helps."""

    state: State
    subject: str
    what: str
    more: tuple[str, ...] = ()

    @classmethod
    def failed(cls, subject: str, error: VnumaError) -> Diagnosis:
        """A check that raised, in the error's own words."""
        return cls("FAIL", subject, error.what, (f"fix: {error.fix}",) if error.fix else ())
