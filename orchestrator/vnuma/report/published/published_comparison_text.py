"""Published figures next to ours, for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from vnuma.analysis.result import Analysis
from vnuma.domain.vm.plain_text import aligned
from vnuma.domain.workloads.sizes import in_table
from vnuma.report.model.model import LoadedRun
from vnuma.report.published.published_comparison import ALLOWED, PublishedRow, published_rows

_KEPT = "kept"


def published_text(loaded: LoadedRun, analysis: Analysis, width: int) -> str:
    """One line per figure, in columns if they fit; empty without any."""
    rows = published_rows(analysis, loaded.study) if analysis.points else []
    if not rows or loaded.published is None:
        return ""
    title = f"Beside {loaded.published.title}: form {analysis.form}, {analysis.measure.unit}"
    size_word = loaded.result.design.size_word
    lines = [(size_word, "arm", "theirs", "ours", "%", "ours, %", "theirs is"), *map(_cells, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    if sum(widths) + 2 * len(widths) > width:
        body = [_line(line, width) for line in lines[1:]]
    else:
        body = aligned(lines, right=range(2, len(widths) - 1))
    return "\n".join([textwrap.fill(title, width - 1, subsequent_indent="  "), *body])


def _cells(row: PublishedRow) -> tuple[str, ...]:
    """The cells by heading; inside, below and above refer to the range of one more boot of ours."""
    size = "all sizes" if row.size is None else in_table(row.size)
    theirs = "" if row.theirs is None else row.their_figure
    figures = (theirs, "" if row.size is None else row.our_figure)
    if row.verdict is None:
        return (size, row.arm, *figures, "ref", "ref", "")
    differences = [text.replace("%", "") for text in (row.their_difference, row.our_difference)]
    where = _KEPT if row.where == ALLOWED else row.where.removesuffix(f" one {row.replicate}'s range")
    return (size, row.arm, *figures, *differences, where)


def _line(cells: Sequence[str], width: int) -> str:
    """The narrow form: theirs, ours; difference, ours; the position of theirs."""
    size, arm, theirs, ours, difference, own, where = cells
    text = f"  {size} {arm}: {f'{theirs}, ours {ours}; ' if theirs else ''}"
    text += f"%: {difference}, ours {own}; {where}" if where else "reference"
    return textwrap.fill(text, width - 1, subsequent_indent="    ", break_on_hyphens=False)
