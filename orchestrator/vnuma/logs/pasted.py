"""A text as people paste it: a lost encoding, a page's tags, a reply's quotes, and several sources in one."""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Callable, Hashable, Iterable, Iterator

_HEAD = 512
"""Bytes at a file's start that show its character set."""

_BREAK = re.compile(r"<br\s{0,9}/?>|</(?:p|div|li|tr|pre)>", re.I)
_TAG = re.compile(
    r"</?(?:p|pre|code|div|span|b|i|em|strong|tt|td|th|tr|table|tbody|li|ul|font|blockquote)"
    r"(?:\s[^<>]{0,200})?/?>",
    re.I,
)
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,16}[A-Za-z]")
_QUOTE = re.compile(r"^(?:[ \t]{0,3}>)+ ?", re.M)
_COMMENT = re.compile(r"(?:#|--|//|\||\*|;) (?! )")
"""One blank: the maps of Coreinfo have `*` and `--` too, and two blanks after them."""


def decoded(data: bytes) -> str:
    """The text of a file, whatever its encoding."""
    text = utf16_text(data)
    return data.decode("utf-8-sig", errors="replace") if text is None else text


def utf16_text(data: bytes) -> str | None:
    """The text of a file in UTF-16; None for another character set.

    Without a byte order mark, NULs show it: most characters of these files are ASCII, whose other byte is
    NUL.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    head = data[:_HEAD]
    low, high = head[::2].count(0), head[1::2].count(0)
    if not 0 < len(head) <= 4 * max(low, high) or 4 * min(low, high) > max(low, high):
        return None
    return data.decode("utf-16-be" if low > high else "utf-16-le", errors="replace")


def cleaned(text: str) -> str:
    """The text without what a page, a mail or a terminal has put around it."""
    if _BREAK.search(text) or _TAG.search(text):
        text = html.unescape(_TAG.sub("", _BREAK.sub("\n", text)))
    text = _COLOUR.sub("", text).replace("\u00a0", " ").replace("\u200b", "")
    return _without_comment_signs(_QUOTE.sub("", text))


def _without_comment_signs(text: str) -> str:
    """Without the sign that every line begins with, as a text inside a comment has."""
    lines = [line for line in text.splitlines() if line.strip()]
    sign = _COMMENT.match(lines[0].lstrip()) if len(lines) > 1 else None
    if not sign or not all(line.lstrip().startswith(sign[0].rstrip()) for line in lines):
        return text
    return "\n".join(line.lstrip().removeprefix(sign[0].rstrip()).removeprefix(" ") for line in lines)


def sources(lines: Iterable[str], key_of: Callable[[str], Hashable | None]) -> Iterator[list[str]]:
    """The lines of each source in a text: one begins where something is said that was said before."""
    part: list[str] = []
    said: set[Hashable] = set()
    for line in lines:
        key = key_of(line)
        if key in said:
            yield part
            part, said = [], set()
        part.append(line)
        if key is not None:
            said.add(key)
    yield part
