"""`vnuma reanalyse`: a table is read whole or refused with its line, and no interval is ever made up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vnuma.cli.main import app
from vnuma.domain.study.study_file import parse_study
from vnuma.errors import InputError
from vnuma.report.published.published import as_page, as_text, read_publication

ROOT = Path(__file__).parents[3]
PAPER = ROOT / "studies/published/dakic2019.csv"


def test_the_paper_is_reanalysed_without_a_verdict() -> None:
    """Percentages and drift, as text and for a document; no word of a verdict is in them."""
    found = read_publication(PAPER)
    text, page = as_text(found), as_page(found)
    rows = {row[0]: row[1:] for row in (re.split(r" *\| *", line.strip("| ")) for line in page.splitlines())}

    assert page.startswith("# Dakic 2019, Table 1\n")
    assert rows["all sizes, %"] == ["ref", "+0.46%", "+1.65%", "+2.34%", "+3.59%"]
    assert set(rows["all sizes, %"]) <= set(text.split())
    assert not re.search("significant|proves|equivalent within", text)
    assert max(map(len, text.splitlines())) <= 100


def test_the_shipped_table_is_that_of_the_shipped_study() -> None:
    """One set of published figures, in both files."""
    study = parse_study((ROOT / "studies/dakic2019.yml").read_text(encoding="utf-8"), "study")
    table = read_publication(PAPER).table

    assert study.published is not None
    assert {
        size: dict(zip(table.arms, times, strict=True))
        for size, times in zip(table.sizes, table.ms, strict=True)
    } == {size: dict(arms) for size, arms in study.published.elapsed_ms.items()}


OTHER = "are not read: what drift alone would do"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no table"),
        ("rows_per_side,1x16,2x8\n", "holds no table"),
        ("rows_per_side,1x16\n500,3\n", r":1: the columns"),
        ("# a study\nname: quick\narms: []\n", r":2: the columns"),
        ("rows_per_side,1x16,1x16\n500,3,4\n", r":1: the columns"),
        ("rows_per_side,1x16,2x8\n500,3\n", r":2: 2 values, but 3 columns"),
        ("rows_per_side,1x16,2x8\n500,3,abc\n", r":2: could not convert"),
        ("# title: x\nrows_per_side,1x16,2x8\n500,3,0\n", r":3: sizes and times must be above 0"),
        ("rows_per_side,1x16,2x8\n500,3,nan\n", r":2: sizes and times must be above 0"),
        ("rows_per_side,1x16,2x8\n900,3,4\n500,3,4\n", "sizes must rise"),
        # Never read as if they were ms: a study's published figures take any unit and direction.
        ("# unit: calls/s\n# better: higher\nrows_per_side,1x16,2x8\n1,3,4\n", OTHER),
        ("connections,1x16,2x8\n1,3,4\n", OTHER),
        ("\xff\xfe", "is not UTF-8"),
        (None, "cannot be read"),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(tmp_path: Path, text: str | None, words: str) -> None:
    """Nothing is guessed; the right form, or the place for other figures, is shown."""
    path = tmp_path / "table.csv"
    if text is not None:
        path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=words) as caught:
        read_publication(path)
    assert re.search(
        "published.figures" if words == OTHER else "rows_per_side|UTF-8|Check the name", str(caught.value.fix)
    )


def test_the_command_prints_it() -> None:
    """As in the examples of its help."""
    result = CliRunner().invoke(app, ["reanalyse", str(PAPER), "--format", "markdown"])

    assert (result.exit_code, result.output.rstrip()) == (0, as_page(read_publication(PAPER)).rstrip())
