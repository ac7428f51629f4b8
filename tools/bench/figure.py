"""A measured figure with its comparison and target; all of them as a table in docs/benchmarks.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

Verdict = Literal["met", "not met", "not evaluated", ""]
_HEADINGS = ("what", "figure", "beside", "target", "", "remark")


@dataclass(frozen=True)
class Figure:
    """One row of the table. `peer` is the same work done by something else in the same run; may be empty."""

    what: str
    value: str
    peer: str = ""
    target: str = ""
    verdict: Verdict = ""
    note: str = ""


def limited(
    what: str,
    figure: float,
    limit: float,
    unit: str,
    *,
    digits: int = 2,
    at_least: bool = False,
    peer: str = "",
    note: str = "",
) -> Figure:
    """A figure with an upper limit as target, or a lower one."""
    met = figure >= limit if at_least else figure < limit
    target = f"{'>=' if at_least else '<'} {limit:g} {unit}"
    return Figure(what, f"{figure:.{digits}f} {unit}", peer, target, "met" if met else "not met", note)


def not_evaluated(what: str, target: str, why: str) -> Figure:
    """What could not be measured here, and why."""
    return Figure(what, "", target=target, verdict="not evaluated", note=why)


def spread(values: Sequence[float], digits: int = 2, unit: str = "") -> str:
    """Median, and the smallest and largest value: `1.80 (1.72 to 1.93)`."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f}) {unit}".rstrip()


def line(figure: Figure) -> str:
    """One figure for the screen."""
    shown = figure.value or figure.verdict
    target = f"target {figure.target}: {figure.verdict}" if figure.value and figure.target else ""
    parts = [part for part in (figure.peer, target, figure.note) if part]
    return f"{figure.what}: {shown}" + "".join(f"\n    {part}" for part in parts)


def section(machine: Mapping[str, str], load: str, figures: Iterable[Figure]) -> str:
    """What stands between the page's two marks."""
    today = datetime.now(UTC).date().isoformat()
    facts = [f"- {name}: {value}" for name, value in machine.items()]
    rows = [_row(_HEADINGS), _row(("---",) * len(_HEADINGS))]
    rows += [_row((f.what, f.value, f.peer, f.target, f.verdict, f.note)) for f in figures]
    return "\n".join([f"`make bench`, {today} (UTC), {load}", "", *facts, "", *rows])


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
