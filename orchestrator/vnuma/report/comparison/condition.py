"""`--fail-if 'slower>2%'`: a condition on every arm's gap to the reference, decided by its interval."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from vnuma.analysis.verdict import Verdict
from vnuma.errors import UsageError

State = Literal["met", "not met", "not evaluated"]

_FORM = re.compile(r"\s*(slower|faster)\s*>\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


@dataclass(frozen=True)
class Condition:
    """`word` by more than `share` (0.02 is 2%): true when the whole 95% interval lies beyond."""

    word: Literal["slower", "faster"]
    share: float

    def __str__(self) -> str:
        return f"{self.word}>{self.share * 100:g}%"

    def of(self, verdict: Verdict | None) -> State:
        """Whether it is true for an arm's gap; not evaluated for the reference or without a verdict."""
        if verdict is None or verdict.withheld or verdict.interval is None or verdict.provisional:
            return "not evaluated"
        # Where lower is better, a worse figure is larger: the share refers to the figure itself.
        upward = (self.word == "slower") == (verdict.better == "lower")
        if upward:
            return "met" if verdict.interval.low > 1 + self.share else "not met"
        return "met" if verdict.interval.high < 1 - self.share else "not met"


def parse_condition(text: str) -> Condition:
    """Parse a condition as people write it. Raises UsageError."""
    found = _FORM.fullmatch(text)
    if found is None or not math.isfinite(float(found[2])):
        raise UsageError(f"'{text}' is not a condition.", fix="Use --fail-if 'slower>2%' or 'faster>2%'.")
    return Condition("slower" if found[1] == "slower" else "faster", float(found[2]) / 100)
