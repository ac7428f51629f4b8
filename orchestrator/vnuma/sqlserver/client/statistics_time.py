"""Parse SET STATISTICS TIME messages in any language of the server.

SQL Server sends two messages, told apart by number: 3613 for parse and compile time, 3612 for execution
times. Wording and spacing depend on language and version, so only unambiguous figures are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from vnuma.errors import MeasurementFailed

EXECUTION = 3612
PARSE_AND_COMPILE = 3613

_STATE = re.compile(r"\((-?\d{1,10})\)\s*$")
_DIGITS = re.compile(r"\d+")
_FIGURE = re.compile(r"=[^\S\n]*(\d{1,12})(?!\d)")
"""At most 12 digits: 31 years in milliseconds."""
_SHOWN = 200


@dataclass(frozen=True)
class Times:
    """CPU and elapsed time in milliseconds, as SQL Server reported them."""

    cpu_ms: int
    elapsed_ms: int


@dataclass(frozen=True)
class StatisticsTime:
    """Every timing message of one batch, in order."""

    execution: tuple[Times, ...] = ()
    parse_and_compile: tuple[Times, ...] = ()


def parse_messages(messages: Iterable[tuple[str, str]]) -> StatisticsTime:
    """The timings among a cursor's messages, which are pairs such as `("[01000] (3612)", text)`.

    Raises MeasurementFailed for a timing message with ambiguous figures.
    """
    found: dict[int, list[Times]] = {EXECUTION: [], PARSE_AND_COMPILE: []}
    for state, text in messages:
        match = _STATE.search(state)
        if match and int(match[1]) in found:
            found[int(match[1])].append(read_times(text))
    return StatisticsTime(tuple(found[EXECUTION]), tuple(found[PARSE_AND_COMPILE]))


def read_times(text: str) -> Times:
    """The two figures of a message: each follows an equals sign, without any number after it.

    A thousands separator, a decimal point or a third figure raises MeasurementFailed, since a wrong number is
    worse than none.
    """
    figures = [match.span(1) for match in _FIGURE.finditer(text)]
    last_two = [match.span() for match in _DIGITS.finditer(text)][-2:]
    if len(figures) != 2 or figures != last_two:
        shown = " ".join(text.split())[:_SHOWN]
        raise MeasurementFailed(
            f"SQL Server's timing message cannot be read with certainty: {shown!r}.",
            fix="Set the login's default language to us_english, and report the message.",
        )
    cpu, elapsed = (int(text[start:end]) for start, end in figures)
    return Times(cpu, elapsed)
