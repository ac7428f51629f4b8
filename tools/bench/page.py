"""The figures as a table, on the screen and in docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from tools.bench.figure import Figure
from tools.page_markers import write_between

BEGIN = "<!-- written by make bench: begin -->"
END = "<!-- written by make bench: end -->"
_HEADINGS = ("what", "figure", "beside", "target", "", "remark")


def line(figure: Figure) -> str:
    """One figure for the screen."""
    shown = figure.value or figure.verdict
    target = f"target {figure.target}: {figure.verdict}" if figure.value and figure.target else ""
    parts = [part for part in (figure.peer, target, figure.note) if part]
    return f"{figure.what}: {shown}" + "".join(f"\n    {part}" for part in parts)


def section(command: str, machine: Mapping[str, str], load: str, figures: Iterable[Figure]) -> str:
    """What stands between the page's two marks."""
    today = datetime.now(UTC).date().isoformat()
    facts = [f"- {name}: {value}" for name, value in machine.items()]
    head = [f"`{command}`, {today} (UTC), {load}", "", *facts, ""]
    return "\n".join([*head, *_table(figures)])


def write(page: Path, text: str) -> None:
    """Replace what stands between the marks. ValueError when the page has lost them."""
    write_between(page, BEGIN, END, text)


def _table(figures: Iterable[Figure]) -> list[str]:
    rows = [_row(_HEADINGS), _row(("---",) * len(_HEADINGS))]
    rows += [_row((f.what, f.value, f.peer, f.target, f.verdict, f.note)) for f in figures]
    return rows


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
