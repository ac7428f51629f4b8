"""Table 1: medians, differences and limits by size, in the layout of the 2019 paper and of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vnuma.analysis.result import Analysis, TableCell, TableRow
from vnuma.analysis.verdict import Verdict
from vnuma.analysis.wording import amount, limits, signed, signed_amount
from vnuma.domain.workloads.metric import in_table, medians, none_valid
from vnuma.report.model.grid import GridTable
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import boots_words, direction, named, places
from vnuma.words.provenance import banner
from vnuma.words.validation import percent_text


def paper_table(loaded: LoadedRun, analysis: Analysis) -> GridTable:
    """The table with a self-contained caption: unit, n, direction, and whether it is simulated."""
    size_word = loaded.result.design.size_word
    (label, arms), *rest = paper_rows(analysis, size_word, secondary=not analysis.primary)
    measure = analysis.measure
    reference = loaded.study.reference
    simulated = banner(loaded.simulated)
    caption = (
        f"{simulated + '. ' if simulated else ''}{loaded.run.name}, {analysis.vm}, form {analysis.form}: "
        f"{named(measure)} in {measure.unit}, {medians(analysis.replicate)}, {direction(measure)}; "
        f"{boots_words(analysis, reference)}; differences are within-block ratios to {reference}"
    )
    rows = tuple((name.strip(), *cells, *[""] * (len(arms) - len(cells))) for name, cells in rest)
    return GridTable(caption, (label, *arms), rows)


PaperRow = tuple[str, list[str]]
"""A label, and a line of medians, differences in their unit or percent, or limits; the reference first."""


def paper_rows(analysis: Analysis, size_word: str, *, secondary: bool) -> Iterator[PaperRow]:
    """For each size: medians, then the differences from the reference; all sizes last."""
    unit = analysis.measure.unit
    yield size_word, [cell.arm for cell in analysis.table[0].cells]
    for table, sizes in zip(analysis.table, analysis.sizes, strict=True):
        medians = ["-" if cell.median is None else amount(cell.median, unit) for cell in table.cells]
        yield in_table(table.size), medians
        verdicts = [arm.verdict for arm in sizes.arms]
        if not secondary:
            yield f"  {unit}", ["ref", *_amounts(table, unit)]
        yield from _differences(verdicts, with_limits=not secondary)
    if len(analysis.table) > 1:
        yield "all sizes", ["" for _ in analysis.table[0].cells]
        yield from _differences([arm.verdict for arm in analysis.arms], with_limits=True)


def _amounts(table: TableRow, unit: str) -> list[str]:
    reference = table.cells[0].median or 0.0
    return [
        "-" if cell.difference is None else signed_amount(cell.difference, unit, reference)
        for cell in table.cells[1:]
    ]


def _differences(verdicts: Sequence[Verdict], *, with_limits: bool) -> Iterator[PaperRow]:
    percents = ("-" if item.ratio is None else signed(item.ratio).removesuffix("%") for item in verdicts)
    yield "  %", ["ref", *percents]
    if not with_limits or not verdicts:
        return
    intervals = [item.interval for item in verdicts]
    shown = [
        "-" if interval is None else limits(interval, n)
        for interval, n in zip(intervals, places(intervals, verdicts[0].margin), strict=True)
    ]
    yield f"  {percent_text(verdicts[0].level)}", ["", *shown]


@dataclass(frozen=True)
class Cell:
    """One arm at one size, as text. `notes` are lines below `main`."""

    arm: str
    main: str
    notes: tuple[str, ...] = ()


def size_rows(analysis: Analysis) -> dict[int | None, tuple[Cell, ...]]:
    """Table 1: the cells of each size, and with None those for all sizes together."""
    rows: dict[int | None, tuple[Cell, ...]] = {}
    unit = analysis.measure.unit
    for table, sizes in zip(analysis.table, analysis.sizes, strict=True):
        decimals = places([arm.verdict.interval for arm in sizes.arms], analysis.margin)
        reference = table.cells[0].median or 0.0
        cells = [_cell(table.cells[0], ("reference",), analysis)]
        for cell, arm, digits in zip(table.cells[1:], sizes.arms, decimals, strict=True):
            notes = _size_notes(cell, arm.verdict, digits, (reference, unit))
            cells.append(_cell(cell, notes, analysis))
        rows[table.size] = tuple(cells)
    if len(rows) > 1:
        rows[None] = _all_sizes(analysis)
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
