"""Remove names, addresses, identifiers and accounts from recordings before they leave a site."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b", re.I), "<uuid>"),
    (re.compile(r"\b(?:[0-9a-f]{2} ){7}[0-9a-f]{2}-(?:[0-9a-f]{2} ){7}[0-9a-f]{2}\b", re.I), "<uuid>"),
    (re.compile(r"\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b", re.I), "<mac>"),
    (re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)*\b"), "<user>"),
    (re.compile(r"\b[A-Za-z][\w.-]*\\[\w.$-]+"), "<user>"),
    (re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"), "<address>"),
    (re.compile(r"(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}(?![\w:])", re.I), "<address>"),
    (re.compile(r"/vmfs/volumes/[^\s\"']+"), "<path>"),
)
_SHORTEST_NAME = 2


class Redactor:
    """Replaces known names with placeholders, then whatever looks like an address or identifier."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """`names` maps secrets to placeholders, such as `vcsa01.corp` to `<vcenter>`."""
        known = {name: word for name, word in names.items() if len(name) >= _SHORTEST_NAME}
        longest_first = sorted(known, key=len, reverse=True)
        self._known = {name.casefold(): word for name, word in known.items()}
        self._names = (
            re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in longest_first), re.I)
            if known
            else None
        )

    def text(self, value: str) -> str:
        """A text without anything that identifies a site."""
        if self._names:
            value = self._names.sub(lambda match: self._known[match[0].casefold()], value)
        for pattern, word in _PATTERNS:
            value = pattern.sub(word, value)
        return value

    def all(self, value: Any) -> Any:
        """The same for every text in a document, including keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.all(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.all(item) for item in value]
        return value
