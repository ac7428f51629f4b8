"""The samples' figures besides their metric, as tables: medians by arm, with unit and direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from vnuma.analysis.table import FigureCell, FigureRow
from vnuma.analysis.wording import amount
from vnuma.domain.vm.plain_text import filled
from vnuma.domain.workloads.replicate import medians
from vnuma.domain.workloads.sizes import in_table
from vnuma.report.model.grid import GridTable, as_screen
from vnuma.report.model.model import LoadedRun
from vnuma.report.published.published_comparison import to_reference

NO_FIGURE = "not measured"


def named_figures(loaded: LoadedRun, vm: str) -> list[tuple[str, GridTable]]:
    """A table for each figure of each form: a line a size, a column an arm. Its name is as `seek-spins`."""
    mine = [row for row in loaded.result.figures if row.vm == vm]
    return [
        (f"{form}-{metric.name}", _table(loaded, list(rows)))
        for (form, metric), rows in groupby(mine, key=lambda row: (row.form, row.metric))
    ]


def figures_text(loaded: LoadedRun, vm: str, width: int) -> Iterator[str]:
    """The same for the terminal; tables that are wider become lines."""
    for _, table in named_figures(loaded, vm):
        text = as_screen(table, width).rstrip("\n")
        if max(map(len, text.splitlines())) <= width:
            yield text
        else:
            yield "\n".join([filled(table.caption, width), *_lines(table)])


def _table(loaded: LoadedRun, rows: Sequence[FigureRow]) -> GridTable:
    form, metric = rows[0].form, rows[0].metric
    what = f"{metric.name}, {metric.unit}, {metric.direction}"
    return GridTable(
        f"Also measured, form {form}: {what}; {medians(loaded.result.design.replicate)}",
        (loaded.result.design.size_word, *(cell.arm for cell in rows[0].cells)),
        tuple(line for row in rows for line in _table_lines(loaded, row)),
    )


def _table_lines(loaded: LoadedRun, row: FigureRow) -> Iterator[tuple[str, ...]]:
    """One size: the figures, and the published ratios to the reference arm, if any."""
    yield (in_table(row.size), *_figures(row))
    theirs = published_ratios(loaded, row)
    if theirs:
        yield ("  ratio", *(_times(to_reference_arm(row, cell)) for cell in row.cells))
        yield ("  published", *(_times(theirs.get(cell.arm)) for cell in row.cells))


def published_ratios(loaded: LoadedRun, row: FigureRow) -> Mapping[str, float]:
    """Published ratios of that figure to their reference arm, by arm."""
    if loaded.published is None:
        return {}
    ratios = loaded.published.figure_ratios.get(row.form, {}).get(row.metric.name, {})
    return to_reference(ratios, loaded.study.reference)


def to_reference_arm(row: FigureRow, cell: FigureCell) -> float | None:
    """Ratio of medians to the reference arm's; None if either is unknown or the reference's is 0."""
    reference = row.cells[0].median
    return cell.median / reference if cell.median is not None and reference else None


def _times(ratio: float | None) -> str:
    return "not known" if ratio is None else f"x{ratio:.3g}"


def _figures(row: FigureRow) -> Iterator[str]:
    for cell in row.cells:
        yield NO_FIGURE if cell.median is None else amount(cell.median, row.metric.unit)


def _lines(table: GridTable) -> Iterator[str]:
    for size, *figures in table.rows:
        for arm, figure in zip(table.headings[1:], figures, strict=True):
            yield f"  {size} {arm}: {figure}"
