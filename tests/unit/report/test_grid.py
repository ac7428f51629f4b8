"""Tables in the forms that people take elsewhere."""

from __future__ import annotations

import csv
import io

from vnuma.report.model.grid import GridTable, as_csv, as_latex, as_markdown, as_screen

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
    assert as_markdown(TABLE).splitlines()[-1] == "| =cmd\\|x | - | +3.7 |"


def test_csv_is_safe_in_a_spreadsheet_and_keeps_numbers() -> None:
    """A formula is disarmed; a negative number and a percentage stay what they are."""
    rows = list(csv.reader(io.StringIO(as_csv(TABLE))))
    assert rows[1:] == [["2x8_a", "1,434", "-0.5%"], ["'=cmd|x", "'-", "+3.7"]]


def test_latex_escapes_its_own_characters() -> None:
    """What is special in LaTeX is text in the table."""
    text = as_latex(TABLE)
    lines = {line.strip() for line in text.splitlines()}
    assert {r"\caption{Elapsed, ms \& \%}", r"2x8\_a & 1,434 & -0.5\% \\"} <= lines
