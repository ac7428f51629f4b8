"""Table 1 of the page: for each size the medians, differences and ranges, as text."""

from __future__ import annotations

from dataclasses import dataclass

from vnuma.analysis.result import Analysis
from vnuma.analysis.table import TableCell
from vnuma.analysis.verdict import Verdict
from vnuma.analysis.wording import amount, limits, signed, signed_amount
from vnuma.domain.workloads.replicate import none_valid
from vnuma.report.model.words import places


@dataclass(frozen=True)
class Cell:
    """One arm at one size, as text. `notes` are lines below `main`."""

    arm: str
    main: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SizeRow:
    """One line of Table 1; `size` is None for all sizes together."""

    size: int | None
    cells: tuple[Cell, ...]


def size_rows(analysis: Analysis) -> list[SizeRow]:
    """A line for each size, and one for all of them together."""
    rows, unit = [], analysis.measure.unit
    for table, sizes in zip(analysis.table, analysis.sizes, strict=True):
        decimals = places([arm.verdict.interval for arm in sizes.arms], analysis.margin)
        reference = table.cells[0].median or 0.0
        cells = [_cell(table.cells[0], ("reference",), analysis)]
        for cell, arm, digits in zip(table.cells[1:], sizes.arms, decimals, strict=True):
            notes = _size_notes(cell, arm.verdict, digits, (reference, unit))
            cells.append(_cell(cell, notes, analysis))
        rows.append(SizeRow(table.size, tuple(cells)))
    if len(rows) > 1:
        rows.append(SizeRow(None, _all_sizes(analysis)))
    return rows


def _size_notes(
    cell: TableCell, verdict: Verdict, digits: int, reference: tuple[float, str]
) -> tuple[str, ...]:
    """The difference in the unit and in percent, and its interval. `reference`: its median and the unit."""
    beside, unit = reference
    if cell.difference is None or verdict.ratio is None:
        return ()
    difference = f"{signed_amount(cell.difference, unit, beside)} {unit}, {signed(verdict.ratio, digits)}"
    return (
        (difference,) if verdict.interval is None else (difference, f"({limits(verdict.interval, digits)})")
    )


def _cell(cell: TableCell, notes: tuple[str, ...], analysis: Analysis) -> Cell:
    unit = analysis.measure.unit
    if cell.median is None or cell.low is None or cell.high is None:
        return Cell(cell.arm, none_valid(analysis.replicate))
    spread = f"{amount(cell.low, unit)} to {amount(cell.high, unit)}"
    return Cell(cell.arm, amount(cell.median, unit), (*notes, spread))


def _all_sizes(analysis: Analysis) -> tuple[Cell, ...]:
    decimals = places([arm.verdict.interval for arm in analysis.arms], analysis.margin)
    return (
        Cell(analysis.table[0].cells[0].arm, "", ("reference",)),
        *(
            Cell(arm.arm, *_estimate(arm.verdict, digits))
            for arm, digits in zip(analysis.arms, decimals, strict=True)
        ),
    )


def _estimate(verdict: Verdict, digits: int) -> tuple[str, tuple[str, ...]]:
    if verdict.ratio is None:
        return none_valid(verdict.replicate), ()
    interval = verdict.interval
    return signed(verdict.ratio, digits), () if interval is None else (f"({limits(interval, digits)})",)
