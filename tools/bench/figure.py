"""A measured figure with its comparison and target."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Verdict = Literal["met", "not met", "not evaluated", ""]


@dataclass(frozen=True)
class Figure:
    """One row of the table. `peer` is the same work done by something else in the same run; may be empty."""

    what: str
    value: str
    peer: str = ""
    target: str = ""
    verdict: Verdict = ""
    note: str = ""

    def beside(self, peer: str) -> Figure:
        """The figure with its peer."""
        return replace(self, peer=peer)

    def noting(self, note: str) -> Figure:
        """The figure with a remark."""
        return replace(self, note=note)


def below(what: str, figure: float, limit: float, unit: str, digits: int = 2) -> Figure:
    """A figure with an upper limit as target."""
    verdict: Verdict = "met" if figure < limit else "not met"
    return Figure(what, f"{figure:.{digits}f} {unit}", target=f"< {limit:g} {unit}", verdict=verdict)


def at_least(what: str, figure: float, limit: float, unit: str, digits: int = 2) -> Figure:
    """A figure with a lower limit as target."""
    verdict: Verdict = "met" if figure >= limit else "not met"
    return Figure(what, f"{figure:.{digits}f} {unit}", target=f">= {limit:g} {unit}", verdict=verdict)


def not_evaluated(what: str, target: str, why: str) -> Figure:
    """What could not be measured here, and why."""
    return Figure(what, "", target=target, verdict="not evaluated", note=why)


def spread(values: Sequence[float], digits: int = 2, unit: str = "") -> str:
    """Median, and the smallest and largest value: `1.80 (1.72 to 1.93)`."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f}) {unit}".rstrip()
