"""A size as text: a number of what its workload counts."""

from __future__ import annotations

import re

_PLURAL = re.compile(r"^(\w{2,})s\b")


def sized(size: int, size_word: str) -> str:
    """`500 rows a side`, `8 streams`, `1 connection`, `1,472 MB`."""
    word = _PLURAL.sub(r"\1", size_word) if size == 1 else size_word
    return f"{size:,} {word}"


def in_table(size: int) -> str:
    """In a table's first column: `500`, `1472`, `2,000,000`."""
    return f"{size:,}" if size > 9999 else str(size)
