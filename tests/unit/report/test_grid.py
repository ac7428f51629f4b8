"""Tables in the forms that people take elsewhere, and generated parts of documents."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vnuma.cli.main import app
from vnuma.errors import InputError
from vnuma.report.model.grid import GridTable, as_csv, as_latex, as_markdown, as_screen
from vnuma.report.terminal.page_markers import write_between

TABLE = GridTable(
    "Elapsed, ms & %", ("arm", "ms", "%"), (("2x8_a", "1,434", "-0.5%"), ("=cmd|x", "-", "+3.7"))
)


def test_screen_columns_stand_under_each_other() -> None:
    """The first to the left, figures to the right."""
    assert as_screen(TABLE).splitlines()[1:] == [
        "arm        ms      %",
        "2x8_a   1,434  -0.5%",
        "=cmd|x      -   +3.7",
    ]


def test_markdown_escapes_the_bars() -> None:
    """A bar in a name does not open a column."""
    assert "| =cmd\\|x | - | +3.7 |" in as_markdown(TABLE)


def test_csv_is_safe_in_a_spreadsheet_and_keeps_numbers() -> None:
    """A formula is disarmed; a negative number and a percentage stay what they are."""
    rows = list(csv.reader(io.StringIO(as_csv(TABLE))))
    assert rows[1:] == [["2x8_a", "1,434", "-0.5%"], ["'=cmd|x", "'-", "+3.7"]]


def test_latex_escapes_its_own_characters() -> None:
    """What is special in LaTeX is text in the table."""
    text = as_latex(TABLE)
    assert r"\caption{Elapsed, ms \& \%}" in text
    assert r"2x8\_a & 1,434 & -0.5\% \\" in text


def test_text_between_marks_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    """Writing twice gives the same page as writing once."""
    page = tmp_path / "page.md"
    page.write_text("before\n<b>\nold\n<e>\nafter\n", encoding="utf-8")
    for _ in range(2):
        write_between(page, "<b>", "<e>", "new")
    assert page.read_text(encoding="utf-8") == "before\n<b>\nnew\n<e>\nafter\n"


def test_a_page_without_marks_is_refused_and_kept(tmp_path: Path) -> None:
    """Nothing is written where the marks are lost."""
    page = tmp_path / "page.md"
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(ValueError, match="has lost the marks"):
        write_between(page, "<b>", "<e>", "new")
    assert page.read_text(encoding="utf-8") == "no marks"


def test_calibrate_refuses_a_page_that_is_not_there_before_it_simulates(tmp_path: Path) -> None:
    """Half a minute of simulation is not lost to a wrong path."""
    result = CliRunner().invoke(app, ["calibrate", "--write", str(tmp_path / "none.md")])
    assert isinstance(result.exception, InputError)
    assert "simulating" not in result.output
