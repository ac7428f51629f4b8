"""Table 1 in the layout of the 2019 paper, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vnuma.analysis.result import Analysis
from vnuma.analysis.table import TableRow
from vnuma.analysis.verdict import Verdict
from vnuma.analysis.wording import amount, limits, signed, signed_amount
from vnuma.domain.vm.percent import percent_text
from vnuma.domain.vm.provenance import banner
from vnuma.domain.workloads.replicate import medians
from vnuma.domain.workloads.sizes import in_table
from vnuma.report.model.grid import GridTable
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import boots_words, direction, named, places


def paper_table(loaded: LoadedRun, analysis: Analysis) -> GridTable:
    """The table with a self-contained caption: unit, n, direction, and whether it is simulated."""
    size_word = loaded.result.design.size_word
    first, *rest = paper_rows(analysis, size_word, secondary=not analysis.primary)
    measure = analysis.measure
    width = len(first.cells)
    reference = loaded.study.reference
    simulated = banner(loaded.simulated)
    caption = (
        f"{simulated + '. ' if simulated else ''}{loaded.run.name}, {analysis.vm}, form {analysis.form}: "
        f"{named(measure)} in {measure.unit}, {medians(analysis.replicate)}, {direction(measure)}; "
        f"{boots_words(analysis, reference)}; differences are within-block ratios to {reference}"
    )
    rows = tuple((row.label.strip(), *row.cells, *[""] * (width - len(row.cells))) for row in rest)
    return GridTable(caption, (first.label, *first.cells), rows)


@dataclass(frozen=True)
class PaperRow:
    """One line: medians, differences in their unit or percent, or limits; the reference first."""

    label: str
    cells: list[str]


def paper_rows(analysis: Analysis, size_word: str, *, secondary: bool) -> Iterator[PaperRow]:
    """For each size: medians, then the differences from the reference; all sizes last."""
    unit = analysis.measure.unit
    yield PaperRow(size_word, [cell.arm for cell in analysis.table[0].cells])
    for table, sizes in zip(analysis.table, analysis.sizes, strict=True):
        medians = ["-" if cell.median is None else amount(cell.median, unit) for cell in table.cells]
        yield PaperRow(in_table(table.size), medians)
        verdicts = [arm.verdict for arm in sizes.arms]
        if not secondary:
            yield PaperRow(f"  {unit}", ["ref", *_amounts(table, unit)])
        yield from _differences(verdicts, with_limits=not secondary)
    if len(analysis.table) > 1:
        yield PaperRow("all sizes", ["" for _ in analysis.table[0].cells])
        yield from _differences([arm.verdict for arm in analysis.arms], with_limits=True)


def _amounts(table: TableRow, unit: str) -> list[str]:
    reference = table.cells[0].median or 0.0
    return [
        "-" if cell.difference is None else signed_amount(cell.difference, unit, reference)
        for cell in table.cells[1:]
    ]


def _differences(verdicts: Sequence[Verdict], *, with_limits: bool) -> Iterator[PaperRow]:
    yield PaperRow(
        "  %",
        ["ref", *("-" if item.ratio is None else signed(item.ratio).removesuffix("%") for item in verdicts)],
    )
    if not with_limits or not verdicts:
        return
    intervals = [item.interval for item in verdicts]
    shown = [
        "-" if interval is None else limits(interval, n)
        for interval, n in zip(intervals, places(intervals, verdicts[0].margin), strict=True)
    ]
    yield PaperRow(f"  {percent_text(verdicts[0].level)}", ["", *shown])
