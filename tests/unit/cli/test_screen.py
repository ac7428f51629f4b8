"""Text in the width of its terminal, and unwrapped without one."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnuma.cli.screen import MANNER, aligned, folded, painted, say, sign, signed, width, working


class Terminal(io.TextIOWrapper):
    """Somebody looks at it."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        """Always."""
        return True


LINES = st.lists(st.text(alphabet="ab/-. :", max_size=160), max_size=6).map("\n".join)
CELLS = st.lists(st.tuples(*[st.text(alphabet="ab -", max_size=60)] * 3), min_size=1, max_size=6)
HEADINGS = ("RUN", "STATE", "LAST EVENT")
LABEL = len("LAST EVENT") + 2


@given(LINES, st.integers(40, 100))
def test_only_a_word_that_is_wider_than_the_terminal_makes_a_line_wider(text: str, columns: int) -> None:
    """Everything else fits, and no word is lost, cut or moved."""
    shown = folded(text, columns)

    assert shown.split() == text.split()
    for line in shown.split("\n"):
        assert len(line) <= columns or len(line.split()) <= 2


@given(LINES)
def test_what_goes_into_a_file_keeps_its_lines(text: str) -> None:
    """There is no width to wrap to."""
    assert width(io.StringIO()) is None
    assert folded(text, None) == text


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "Runs     page_cache with 1,472 MB (single, saturated)",
            "Runs     page_cache with 1,472 MB (single,",
        ),
        ("  block P29  localhost has no numactl, which it needs", "  block P29  localhost has no numactl,"),
        (
            "No label here: the line goes on two columns further in",
            "No label here: the line goes on two columns",
        ),
    ],
)
def test_continuation_lines_are_indented_to_the_label(line: str, shown: str) -> None:
    """As people write lists by hand."""
    first, second = folded(line, 43).split("\n")

    assert first == shown
    assert len(second) - len(second.lstrip()) == {"R": 9, " ": 13, "N": 2}[line[0]]


def test_a_command_of_its_own_line_stays_whole() -> None:
    """A terminal wraps it without a line break, so that it can be copied."""
    line = "  .venv/bin/vnuma run studies/a-study-with-a-long-name.yml -i inventory"

    assert folded(line, 43) == line


@given(CELLS, st.integers(40, 100))
def test_a_table_fits_and_loses_and_cuts_no_word(rows: list[tuple[str, str, str]], columns: int) -> None:
    """Cells wrap between words. Only a word that is wider than the terminal makes a line wider."""
    lines = aligned([HEADINGS, *rows], columns)

    shown, words = Counter(" ".join(lines).split()), Counter(" ".join(map(" ".join, rows)).split())
    assert words <= shown
    assert set(shown - words) <= set(" ".join(HEADINGS).split())
    assert all(len(line) <= columns or len(max(line.split(), key=len)) > columns - LABEL for line in lines)


def test_a_table_that_cannot_wrap_becomes_lines_of_heading_and_value() -> None:
    """Every column is still there, each value in one piece."""
    rows = [("VM", "CPUs"), ("a-name-of-thirty-characters-aaa", "0,2,4,6,8,10,12,14"), ("b", "none")]

    assert aligned(rows, 40) == [
        "VM    a-name-of-thirty-characters-aaa",
        "CPUs  0,2,4,6,8,10,12,14",
        "",
        "VM    b",
        "CPUs  none",
    ]


def test_a_table_that_fits_is_a_line_for_each_row() -> None:
    """Columns as wide as their widest cell, two spaces between them."""
    assert aligned([["RUN", "STATE"], ["quick.1", "running"]], 80) == ["RUN      STATE", "quick.1  running"]


def test_no_terminal_obeys_a_name() -> None:
    """Names of VMs come from others: what a terminal would obey is written out, lines stay lines."""
    stream = io.StringIO()
    say("sql\x1b[2J\r16\u202e\n\tnext", stream)

    assert stream.getvalue() == "sql\\x1b[2J\\r16\\u202e\n\tnext\n"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", ["✗ FAIL  privilege", "✓ ok    driver", "  block P29  it", "        fix: this"]),
        ("latin-1", ["x FAIL  privilege", "+ ok    driver", "  block P29  it", "        fix: this"]),
    ],
)
def test_a_state_has_a_shape_on_a_terminal(
    encoding: str, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In columns of its own, in letters that the terminal has; who sees no colour sees the shape."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal(encoding)
    lines = [signed(line, terminal) for line in ("FAIL  privilege", "ok    driver", "      fix: this")]
    indented = signed("  block P29  it", terminal)

    assert [*lines[:2], indented.replace(indented[0], " ", 1), lines[2]] == shown
    assert indented[0] == shown[0][0]
    assert painted(lines[0], terminal).startswith("\x1b[31m" + shown[0][:6])
    assert signed("ok    driver", io.StringIO()) == "ok    driver"
    assert sign("no state", terminal) == ""


@pytest.mark.parametrize(("quiet", "shown"), [(False, "one of 3\n"), (True, "")])
def test_quiet_hides_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], quiet: bool, shown: str
) -> None:
    """Without a terminal progress is lines on standard error."""
    monkeypatch.setattr(MANNER, "quiet", quiet)
    with working() as tell:
        tell("one of 3")

    assert capsys.readouterr() == ("", shown)
