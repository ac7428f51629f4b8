"""Text that can be printed, stored and drawn: without control characters and unencodable ones. Pure.

Terminals obey control characters, Unicode's direction marks change the reading order, and a lone surrogate
(half of a UTF-16 pair) cannot be written to a file.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Sequence

_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_LAYOUT = frozenset("\n\r\t")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?[\d.,]+%?")


def refuse_controls(text: str, *, lines: bool = False) -> None:
    """Raise ValueError with the first such character; with `lines`, line breaks and tabs are allowed."""
    for match in _CONTROL.finditer(text):
        if not (lines and match[0] in _LAYOUT):
            raise ValueError(
                f"character U+{ord(match[0]):04X} at position {match.start() + 1} is not plain text"
            )


def escaped(text: str) -> str:
    r"""The text with each such character except line breaks and tabs escaped, as \x1b: for terminals."""
    return _CONTROL.sub(lambda match: _written(match[0]), text)


def capitalised(text: str) -> str:
    """With its first letter in upper case, and the others as they are."""
    return f"{text[:1].upper()}{text[1:]}"


def plural(noun: str) -> str:
    """`blocks`, `passes`."""
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


def counted(number: int, noun: str) -> str:
    """`1 block`, `2,500 VMs`, `6 passes`."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def first_line(text: str) -> str:
    """The text's first line, with dots in place of more."""
    first, more, _ = text.partition("\n")
    return f"{first} ..." if more else first


def gigabytes(megabytes: float) -> str:
    """Memory with at most one decimal, since more would not be true: 64 GB, 226.5 GB, 512 MB."""
    if 0 < megabytes < 1024:
        return f"{megabytes:.0f} MB"
    return f"{megabytes / 1024:.1f}".removesuffix(".0") + " GB"


def listed(names: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def first_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """The first `most` names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def signed_seconds(seconds: float) -> str:
    """A clock's difference in whole seconds, ahead (+) or behind (-): +3 s, -12 s, 0 s."""
    whole = round(seconds)
    return f"{whole:+,} s" if whole else "0 s"


def duration(seconds: float | None) -> str:
    """A duration: 41 s, 12 min, 15 h 55 min."""
    if seconds is None:
        return "unknown"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes <= 100 else f"{minutes // 60} h {minutes % 60} min"


def filled(text: str, width: int, *, first: str = "", then: str = "") -> str:
    """The text in lines of at most that width, with these indents. No word, number or path is split."""
    return textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )


def aligned(rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """Rows of cells as lines with aligned columns; those in `right` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def spreadsheet_safe(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would run as a formula; numbers stay."""
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def in_yaml(text: str) -> str:
    """The text as a YAML scalar in double quotes: plain ASCII unchanged, everything else by number."""
    return f'"{"".join(map(_in_quotes, text))}"'


def data_in_yaml(text: str) -> str:
    """The same for Ansible, marked as never a template.

    https://docs.ansible.com/ansible/latest/playbook_guide/playbooks_advanced_syntax.html
    """
    return f"!unsafe {in_yaml(text)}"


def _in_quotes(character: str) -> str:
    plain = character.isascii() and character.isprintable() and character not in '"\\'
    return character if plain else f"\\U{ord(character):08x}"


def _written(character: str) -> str:
    return character if character in "\n\t" else character.encode("unicode_escape").decode("ascii")
