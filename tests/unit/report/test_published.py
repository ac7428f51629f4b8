"""`vnuma reanalyse`: a table is read whole or refused with its line, and no interval is ever made up."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from vnuma.cli.main import app
from vnuma.domain.study.study_file import parse_study
from vnuma.errors import InputError
from vnuma.report.published.published import as_page, as_text, read_publication

ROOT = Path(__file__).parents[3]
PAPER = ROOT / "studies/published/dakic2019.csv"


def test_the_paper_is_reanalysed() -> None:
    """Percentages, drift, and both lists stand there; the words of verdicts do not."""
    text = as_text(read_publication(PAPER))

    assert "Dakic 2019, Table 1" in text
    assert "+3.59%" in text
    assert not any(word in text for word in ("significant", "proves", "equivalent within"))
    assert max(map(len, text.splitlines())) <= 100


def test_markdown_has_the_same_figures() -> None:
    """For a document."""
    page = as_page(read_publication(PAPER))

    assert page.startswith("# Dakic 2019, Table 1")
    assert "| all sizes, % | ref | +0.46% | +1.65% | +2.34% | +3.59% |" in page


def test_the_shipped_table_is_that_of_the_shipped_study() -> None:
    """One set of published figures, in both files."""
    study = parse_study((ROOT / "studies/dakic2019.yml").read_text(encoding="utf-8"), "study")
    table = read_publication(PAPER).table

    assert study.published is not None
    assert {
        size: dict(zip(table.arms, times, strict=True))
        for size, times in zip(table.sizes, table.ms, strict=True)
    } == {size: dict(arms) for size, arms in study.published.elapsed_ms.items()}


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
    ],
)
def test_a_wrong_table_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    """Nothing is guessed."""
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words) as caught:
        read_publication(path)
    assert "rows_per_side" in str(caught.value.fix)


def test_files_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    """Missing, or not text."""
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe")
    for name, words in (("none.csv", "cannot be read"), ("x.csv", "is not UTF-8")):
        with pytest.raises(InputError, match=words):
            read_publication(tmp_path / name)


def test_the_command_prints_it() -> None:
    """As in the examples of its help."""
    result = CliRunner().invoke(app, ["reanalyse", str(PAPER), "--format", "markdown"])

    assert result.exit_code == 0
    assert "What cannot be said" in result.output


@pytest.mark.parametrize(
    "text",
    [
        "# unit: calls/s\n# better: higher\nrows_per_side,1x16,2x8\n1,3,4\n",
        "connections,1x16,2x8\n1,3,4\n",
    ],
)
def test_figures_that_are_no_times_by_rows_are_refused_with_the_place_for_them(
    tmp_path: Path, text: str
) -> None:
    """Never read as if they were ms: a study's published figures take any unit and direction."""
    path = tmp_path / "other.csv"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match="are not read: what drift alone would do") as caught:
        read_publication(path)
    assert "published.figures" in str(caught.value.fix)
