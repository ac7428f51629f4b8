"""Replace what stands between two marks of a page: how generated tables get into documents."""

from __future__ import annotations

from pathlib import Path


def write_between(page: Path, begin: str, end: str, text: str) -> None:
    """Put `text` between the marks. ValueError when the page has lost them, OSError when it is not there."""
    before, first, rest = page.read_text(encoding="utf-8").partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise ValueError(f"{page.name} has lost the marks that the table stands between: {begin} and {end}")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
