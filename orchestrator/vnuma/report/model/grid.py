"""A table of text, and its output formats: screen, Markdown, CSV, LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from vnuma.words.plain_text import aligned, escaped, filled, spreadsheet_safe

WIDEST = 100
"""Captions on the screen are wrapped at this width."""

_LATEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
}


@dataclass(frozen=True)
class GridTable:
    """Headings and rows of text, all of one length; `caption` says what the figures are, with unit."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def as_screen(table: GridTable, widest: int = WIDEST) -> str:
    """Aligned columns, the first to the left and the others to the right."""
    body = aligned([table.headings, *table.rows], right=range(1, len(table.headings)))
    return "\n".join([filled(table.caption, widest), *body]) + "\n"


def as_markdown(table: GridTable) -> str:
    """A pipe table under its caption."""
    marks = ("---", *("---:" for _ in table.headings[1:]))
    lines = [_pipes(table.headings), _pipes(marks), *(_pipes(row) for row in table.rows)]
    return "\n".join([f"**{table.caption}**", "", *lines]) + "\n"


def as_csv(table: GridTable) -> str:
    """Comma-separated, as shown."""
    return csv_text([table.headings, *table.rows])


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Lines of cells, each as `field_text`."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(field_text, row) for row in rows)
    return out.getvalue()


def field_text(value: object) -> object:
    """A CSV value: true and false in lower case, empty for None, times in ISO 8601, without formulas and
    control characters.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return escaped(spreadsheet_safe(value)) if isinstance(value, str) else value


def as_latex(table: GridTable) -> str:
    """A `table` with booktabs rules, to be pasted into a paper."""
    columns = "l" + "r" * (len(table.headings) - 1)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(table.caption)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _ampersands(table.headings),
        r"\midrule",
        *(_ampersands(row) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    """Text with LaTeX's own characters escaped."""
    return "".join(_LATEX.get(char, char) for char in text)


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(latex_text(cell) for cell in cells) + r" \\"
