"""One thing that the doctor checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "FAIL"]


@dataclass(frozen=True)
class Diagnosis:
    """How a thing stands, what it is about, what was seen, and what helps."""

    state: State
    subject: str
    what: str
    more: tuple[str, ...] = ()
