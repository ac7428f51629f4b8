"""Accepted findings in code comments next to a VM: `# vnuma:ignore=T05 until 2027-01-31: reason`."""

from __future__ import annotations

from collections.abc import Sequence

MARK = "vnuma:ignore"
_COMMENTS = ("#", "//", "/*", "*")


def accepted_in(lines: Sequence[str], first: int, last: int) -> tuple[str, ...]:
    """The marks in these lines, counted from 1, and in the comments just above them."""
    above = first
    while above > 1 and _is_comment(lines[above - 2]):
        above -= 1
    return tuple(line[line.index(MARK) :].strip() for line in lines[above - 1 : last] if MARK in line)


def block_end(lines: Sequence[str], following: int) -> int:
    """The last line of a block before the line `following` (0: the file's end). Comments just above that line
    belong to it.
    """
    last = following - 1 if following else len(lines)
    while last > 0 and following and _is_comment(lines[last - 1]):
        last -= 1
    return last


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(_COMMENTS)
