"""What all verbs print alike: line width, errors, the notice about simulation."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TextIO

import typer
from rich.console import Console

from vnuma.cli.verb_list import NAMES
from vnuma.errors import UsageError, VnumaError, writing
from vnuma.words.plain_text import escaped, filled

# The widest output, however wide the terminal.
WIDEST = 100
# For a terminal that reports no width, such as a serial console, or one too narrow for any layout.
USUAL = 80
NARROWEST = 40
# A narrower column of words is hard to read.
_NARROWEST_CELL = 16
# Continuation lines align with the text after a label, if that starts in the first columns.
_LABEL = 24


Colour = Literal["auto", "always", "never"]
"""When text is coloured. `auto`: on a terminal, unless NO_COLOR is set or TERM is dumb."""


@dataclass
class Manner:
    """How this process prints; set once, by the options of every verb."""

    colour: Colour = "auto"
    quiet: bool = False
    verbose: bool = False
    store: str | None = None
    """As `--store` was given: commands to run next need it too."""


MANNER = Manner()


def coloured(stream: TextIO) -> bool:
    """Whether output to that stream is coloured."""
    if MANNER.colour != "auto":
        return MANNER.colour == "always"
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


_MEANINGS = re.compile(
    r"(?P<red>^[ ✗x]*(?:FAIL|block)(?= )|\bslower by [\d.,]+%|\bfailed\b|\binvalid\b)"
    r"|(?P<yellow>^SIMULATED[^\n]*|^[ !]*warn(?= )|\bundecided\b|\btoo few boots\b|^Verdict withheld\b)"
    r"|(?P<green>^[ ✓+]*ok(?= )|\bfaster by [\d.,]+%)"
    r"|(?P<blue>\bequivalent within [\d.,]+%)",
    re.MULTILINE,
)
_CODES = {"red": 31, "green": 32, "yellow": 33, "blue": 34}


_SIGNS = {
    state: sign
    for sign, states in {
        "✓": ("ok", "valid", "finished", "held"),
        "✗": ("FAIL", "block", "failed", "invalid", "conflict", "died", "differs"),
        "!": ("warn", "stopping", "stopped", "interrupted"),
        "-": ("info", "waived", "not evaluable"),
        "▶": ("running",),
        "·": ("planned",),
    }.items()
    for state in states
}
"""Each state's symbol, for people who cannot rely on colours."""
_IN_ASCII = {"✓": "+", "✗": "x", "▶": ">", "·": "."}


def sign(state: str, stream: TextIO | None = None) -> str:
    """A state's symbol and a space, for a terminal; empty for a file, a pipe or another word."""
    target = stream or sys.stdout
    shape = _SIGNS.get(state)
    if not shape or not target.isatty():
        return ""
    try:
        shape.encode(target.encoding or "ascii")
        plain = os.environ.get("TERM") in ("linux", "dumb")
    except UnicodeEncodeError:
        plain = True
    return f"{_IN_ASCII.get(shape, shape) if plain else shape} "


def signed(line: str, stream: TextIO | None = None) -> str:
    """On a terminal, the line with its first word's state symbol in two columns before it.

    Other lines are indented alike. Two leading blanks are used instead.
    """
    if not (stream or sys.stdout).isatty():
        return line
    state = next((state for state in _SIGNS if line.lstrip().startswith(f"{state} ")), "")
    shape = sign(state, stream) or "  "
    return shape + (line[2:] if state and line.startswith("  ") else line)


def painted(text: str, stream: TextIO) -> str:
    """The text, coloured if enabled. Colour never has a meaning of its own."""
    if not coloured(stream):
        return text
    return _MEANINGS.sub(lambda word: f"\x1b[{_CODES[str(word.lastgroup)]}m{word[0]}\x1b[0m", text)


def console(stream: TextIO | None = None) -> Console:
    """A console on standard output, coloured as `coloured` says and at most 100 columns wide."""
    target = stream or sys.stdout
    forced = True if MANNER.colour == "always" else None
    made = Console(
        file=target, highlight=False, no_color=not coloured(target), force_terminal=forced, soft_wrap=True
    )
    if made.width > WIDEST:
        made.width = WIDEST
    return made


def error_text(error: VnumaError) -> str:
    """An expected error for people: what happened, what to do next, and the exit code."""
    lines = str(error).rstrip().splitlines()
    return "\n".join([*lines, f"exit {error.exit_code}"])


_NAMED = re.compile(rf"(?<![\w./=-])vnuma (?=(?:{'|'.join(NAMES)})\b)")


_ANSIBLE = re.compile(r"(?<![\w./=-])(ansible-(?:playbook|inventory)) (?=-i |--list |vnuma\.vnuma\.)")


_OF_A_STORE = re.compile(
    r"(?<![\w./=-])(vnuma (?:run|status|stop|restore|baseline (?:show|diff)|audit(?: show| verify)?"
    r"|results|report|compare|export))(?![\w-])(?![^\n;,]* --store )"
)


def runnable(text: str) -> str:
    """The text with commands that can be run: with this command's --store, and as this shell finds them.

    `.venv/bin/vnuma plan` if vnuma is not on PATH; Ansible's commands likewise. A store's URL that may hold a
    password is left out.
    """
    if MANNER.store and not re.search(r"//[^/]*:[^/]*@|password", MANNER.store):
        option = f" --store {shlex.quote(MANNER.store)}"
        text = _OF_A_STORE.sub(lambda found: found[1] + option, text)
    here = command()
    if here == "vnuma":
        return text
    text = _ANSIBLE.sub(lambda found: f"{_beside(here, found[1])} ", text)
    return _NAMED.sub(lambda _: f"{here} ", text)


def _beside(here: str, name: str) -> str:
    """Ansible's command as this shell finds it: by name, or next to vnuma."""
    path = Path(here).with_name(name)
    return str(path) if not shutil.which(name) and path.exists() else name


def command() -> str:
    """How this shell starts vnuma: by name if that is on PATH, otherwise by path."""
    here = Path(sys.argv[0])
    if here.name != "vnuma" or shutil.which("vnuma"):
        return "vnuma"
    with suppress(ValueError):
        return str(here.resolve().relative_to(Path.cwd()))
    return str(here)


def clock_time(seconds: float) -> str:
    """The time that many seconds from now: 14:05, or Tue 04:12 on another day."""
    now = datetime.now().astimezone()
    then = now + timedelta(seconds=seconds)
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%a %H:%M}"


def width(stream: TextIO | None = None) -> int | None:
    """Columns of the stream's terminal, at most WIDEST; None without a terminal.

    Output to a file or a pipe keeps whole lines, so that `grep` finds phrases.
    """
    target = stream or sys.stdout
    if not target.isatty():
        return None
    try:
        columns = os.get_terminal_size(target.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return min(max(columns or USUAL, NARROWEST), WIDEST)


def can_ask() -> bool:
    """Whether somebody at a terminal can be asked, on standard error."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def require_yes(question: str) -> None:
    """Ask on standard error. Raises UsageError after a no, and typer.Abort after Ctrl-C."""
    if not typer.confirm(question, err=True):
        raise UsageError("You answered no: nothing was changed.", fix="--yes does not ask.")


def say(text: str, stream: TextIO | None = None) -> None:
    """Print lines on standard output, or another stream, folded to its width.

    Control characters are escaped, since names come from vCenters, inventories and archives of others.
    """
    target = stream or sys.stdout
    target.write(painted(folded(escaped(runnable(text)), width(target)), target) + "\n")
    target.flush()


def note(text: str) -> None:
    """Print progress or a hint on standard error; `--quiet` hides it."""
    if not MANNER.quiet:
        say(text, sys.stderr)


def echo(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Print text without folding, with control characters escaped as in `say`."""
    target = sys.stderr if err else sys.stdout
    target.write(escaped(text) + ("\n" if nl else ""))
    target.flush()


def echo_json(document: Mapping[str, Any]) -> None:
    echo(json.dumps(document, indent=2))


def write_out(text: str | bytes, output: Path | None, what: str, option: str = "-o") -> None:
    """Print a document unchanged, or write it to the file of `option`, creating its folder.

    Raises InputError.
    """
    if output is None:
        echo(str(text), nl=False)
        return
    with writing(output, what, fix=f"Name another file: {option} FILE"):
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_bytes(text.encode() if isinstance(text, str) else text)


@contextmanager
def working() -> Iterator[Callable[[str], None]]:
    """A function that shows on standard error what is being computed; the line disappears when done.

    Without a terminal it prints a log line. `--quiet` hides both.
    """
    if MANNER.quiet or not sys.stderr.isatty():
        yield note
        return
    with console(sys.stderr).status("") as line:
        yield line.update


def folded(text: str, columns: int | None) -> str:
    """Wide lines continue below, indented under the text after their label. No word, path, or command on a
    line of its own is split: the terminal wraps that, and it can be copied.
    """
    if columns is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _fold(line, columns))


_OF_A_COMMAND = re.compile(r" +(\S*/)?vnuma ")


def _fold(line: str, columns: int) -> list[str]:
    if len(line) <= columns or _OF_A_COMMAND.match(line):
        return [line]
    gaps = [gap.end() for gap in re.finditer(r"(?<=\S)  +(?=\S)", line[: _LABEL + 1])]
    inner = len(line) - len(line.lstrip())
    indent = gaps[-1] if gaps else inner if inner > 2 else inner + 2
    return filled(line, columns, then=" " * indent).split("\n")


def aligned(rows: Sequence[Sequence[str]], columns: int | None = None) -> list[str]:
    """Rows of cells as lines with aligned columns; the first row has the headings.

    In fewer `columns`, cells of the widest columns wrap between words. Where that is not enough, each row
    becomes a line for each heading and value.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if columns:
        room = columns - 2 * (len(widths) - 1)
        words = [max(map(_longest_word, column)) for column in zip(*rows, strict=True)]
        least = [max(word, min(whole, _NARROWEST_CELL)) for word, whole in zip(words, widths, strict=True)]
        while sum(widths) > room and widths != least:
            widest = max((width, place) for place, width in enumerate(widths) if width > least[place])[1]
            widths[widest] -= 1
        if sum(widths) > room:
            return _records(rows, columns)
    return [line for row in rows for line in _row(row, widths)]


def _longest_word(cell: str) -> int:
    return max(map(len, cell.split()), default=0)


def _records(rows: Sequence[Sequence[str]], columns: int) -> list[str]:
    """A line for each heading and its value, a blank line after each row."""
    headings, label = rows[0], max(map(len, rows[0]))
    return [
        line
        for row in rows[1:]
        for heading, cell in (*zip(headings, row, strict=True), ("", ""))
        for line in _fold(f"{heading.strip():{label}}  {cell.strip()}".rstrip(), columns)
    ][:-1]


def _row(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """A row in as many lines as its longest cell needs."""
    cells = [filled(cell, max(room, 1)).split("\n") for cell, room in zip(row, widths, strict=True)]
    return [
        "  ".join(
            (cell[line] if line < len(cell) else "").ljust(room)
            for cell, room in zip(cells, widths, strict=True)
        ).rstrip()
        for line in range(max(map(len, cells)))
    ]
