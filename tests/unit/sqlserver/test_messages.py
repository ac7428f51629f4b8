"""Timing messages: read right in every language, or refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.logs.published import samples
from vnuma.errors import MeasurementFailed
from vnuma.sqlserver.client.statistics_time import Times, parse_messages, read_times

EXECUTION = "\n SQL Server Execution Times:\n   CPU time = 875 ms,  elapsed time = 1340 ms."
PUBLISHED = samples("statistics_time.yml")


@pytest.mark.parametrize("sample", PUBLISHED, ids=[sample["id"] for sample in PUBLISHED])
def test_published_messages_are_read(sample: dict[str, Any]) -> None:
    """Words, unit, punctuation and line breaks differ by language; the two figures are found."""
    for message in sample["messages"]:
        assert read_times(message["text"]) == Times(message["cpu"], message["elapsed"])


@pytest.mark.parametrize("sample", PUBLISHED, ids=[sample["id"] for sample in PUBLISHED])
def test_several_published_messages_in_one_text_are_refused(sample: dict[str, Any]) -> None:
    """Nobody could say which of the figures are the statement's."""
    texts = [message["text"] for message in sample["messages"]] * 2
    with pytest.raises(MeasurementFailed):
        read_times("".join(texts))


@pytest.mark.parametrize(
    "text",
    [
        "SQL Server Execution Times: CPU time = 1,234 ms, elapsed time = 5 ms.",
        "SQL Server Execution Times: CPU time = 5 ms, elapsed time = 1,234 ms.",
        "SQL Server Execution Times: CPU time = 1.5 ms, elapsed time = 2.5 ms.",
        "SQL Server Execution Times: CPU time = 1 234 ms, elapsed time = 5 678 ms.",
        "SQL Server Execution Times: CPU time = -5 ms, elapsed time = 7 ms.",
        "SQL Server Execution Times: CPU time = 5 ms.",
        "SQL Server Execution Times: CPU time = 5 ms, elapsed time = 7 ms, waits = 9 ms.",
        f"SQL Server Execution Times: CPU time = 5 ms, elapsed time = {'7' * 4_301} ms.",
        "SQL Server Execution Times: CPU time = five ms, elapsed time = seven ms.",
        "",
    ],
)
def test_doubtful_messages_are_refused(text: str) -> None:
    """Separators, decimals, signs and other numbers of figures are never guessed at."""
    with pytest.raises(MeasurementFailed):
        read_times(text)


LETTERS = st.characters(exclude_categories=["Nd", "Nl", "No", "Cs"], exclude_characters="=")
WORDS = st.text(LETTERS, max_size=20)
FIGURES = st.integers(0, 10**12 - 1)


@given(WORDS, FIGURES, WORDS, FIGURES, WORDS)
def test_any_language_is_read_right(title: str, cpu: int, between: str, elapsed: int, end: str) -> None:
    """Whatever surrounds the figures, as long as each follows an equals sign."""
    assert read_times(f"{title}= {cpu}{between}= {elapsed}{end}") == Times(cpu, elapsed)


@given(FIGURES, FIGURES, st.sampled_from([",", ".", " ", "'", "\u00a0", "\u202f"]), st.booleans())
def test_grouped_figures_are_never_misread(cpu: int, elapsed: int, separator: str, english: bool) -> None:
    """A message with separators in its figures is refused; without any it is read right."""
    parts = [f"{value:,}".replace(",", separator) for value in (cpu, elapsed)]
    text = f"{'CPU time' if english else 'CPU-Zeit'} = {parts[0]} ms,  elapsed time = {parts[1]} ms."
    if max(cpu, elapsed) < 1000:
        assert read_times(text) == Times(cpu, elapsed)
    else:
        with pytest.raises(MeasurementFailed):
            read_times(text)


def test_messages_are_distinguished_by_number() -> None:
    """3612 is execution, 3613 is parse and compile; others are none of our business."""
    parse = "SQL Server parse and compile time: \n   CPU time = 16 ms, elapsed time = 40 ms."

    found = parse_messages(
        [
            ("[01000] (3613)", parse),
            ("[01000] (5701)", "Changed database context to 'master'."),
            ("[01000] (3612)", EXECUTION),
        ]
    )

    assert found == ([Times(875, 1340)], [Times(16, 40)])


def test_a_driver_that_gives_no_number_yields_no_timing() -> None:
    """Without the message's number nobody knows which time it is, so none is taken."""
    assert parse_messages([("[01000]", EXECUTION)]) == ([], [])
