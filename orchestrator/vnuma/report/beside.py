"""This study beside somebody else's published figures."""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.analysis.result import Analysis
from vnuma.analysis.wording import decimals, limits, milliseconds, percent, signed
from vnuma.domain.study import Published


@dataclass(frozen=True)
class PublishedRow:
    """One arm at one size: both medians in ms, both differences from the reference, and where theirs lies."""

    size: int
    arm: str
    their_ms: str
    our_ms: str
    their_difference: str
    our_difference: str
    where: str


def published_rows(analysis: Analysis, published: Published) -> list[PublishedRow]:
    """Every size and arm for which there is a published figure."""
    rows = []
    for table, sizes in zip(analysis.table, analysis.sizes, strict=True):
        theirs = published.elapsed_ms.get(table.size, {})
        verdicts = {arm.arm: arm.verdict for arm in sizes.arms}
        base = theirs.get(analysis.table[0].cells[0].arm)
        for cell in table.cells:
            if cell.arm not in theirs:
                continue
            verdict = verdicts.get(cell.arm)
            their_ratio = theirs[cell.arm] / base if base else None
            ours, where = "reference", ""
            if verdict:
                ours, where = "no valid boot", "not comparable"
            if verdict and verdict.ratio is not None and verdict.interval:
                places = decimals([verdict.interval], verdict.margin)
                ours = f"{signed(verdict.ratio, places)} ({limits(verdict.interval, places)})"
                where = _where(their_ratio, verdict.interval.low, verdict.interval.high)
            rows.append(
                PublishedRow(
                    size=table.size,
                    arm=cell.arm,
                    their_ms=milliseconds(theirs[cell.arm]),
                    our_ms="no valid boot" if cell.median_ms is None else milliseconds(cell.median_ms),
                    their_difference=_difference(their_ratio) if verdict else "reference",
                    our_difference=ours,
                    where=where,
                )
            )
    return rows


def _difference(ratio: float | None) -> str:
    return "no reference" if ratio is None else f"{percent(ratio):+.1f}%"


def _where(theirs: float | None, low: float, high: float) -> str:
    if theirs is None:
        return "not comparable"
    if theirs < low:
        return "below our interval"
    return "above our interval" if theirs > high else "inside our interval"
