"""What every verb shares on the screen: the console, errors, the word that something is simulated."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from rich.console import Console

from vnuma.domain import provenance
from vnuma.errors import VnumaError

# Nothing is wider than this, however wide the terminal.
WIDEST = 100


def console(stream: TextIO | None = None) -> Console:
    """A console on standard output that obeys NO_COLOR and is never wider than 100 columns."""
    target = stream or sys.stdout
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    made = Console(file=target, highlight=False, no_color=plain, soft_wrap=True)
    if made.width > WIDEST:
        made.width = WIDEST
    return made


def error_text(error: VnumaError) -> str:
    """An expected error for people: what, what next, and the exit code that scripts see."""
    lines = str(error).rstrip().splitlines()
    return "\n".join([*lines, f"exit {error.exit_code}"]) + "\n"


def simulated_banner(scenario: str | None) -> str:
    """The first line of every output about simulated figures; empty for real ones."""
    return provenance.banner(scenario)


def duration(seconds: float | None) -> str:
    """A time for people: 41 s, 12 min, 15 h 55 min."""
    if seconds is None:
        return "unknown"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes <= 100 else f"{minutes // 60} h {minutes % 60} min"


def plural(count: int, noun: str) -> str:
    """`1 block`, `2 blocks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def aligned(rows: list[list[str]]) -> list[str]:
    """Rows of cells as lines, each column as wide as its widest cell."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
