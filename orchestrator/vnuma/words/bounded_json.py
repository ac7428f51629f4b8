"""Read JSON from elsewhere within limits of size and depth. Pure.

Python's reader accepts NaN, integers of any length and strings that no encoding can write; each fails much
later, during a report.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

DEEPEST = 64
"""Most levels of lists and mappings; vnuma's own documents have fewer than ten."""

_MEGABYTE = 1_000_000
LARGEST_WHOLE = 2**63
"""Whole numbers below it, and from its negative on, fit in 64 bits."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(text: str | bytes, *, most_bytes: int = 16 * _MEGABYTE) -> Any:
    """The document. Raises ValueError with the problem in a few words."""
    if len(text) > most_bytes:
        raise ValueError(f"it is larger than {most_bytes / _MEGABYTE:g} MB")
    try:
        written = text if isinstance(text, str) else text.decode("utf-8")
        document = _DECODER.decode(written)
    except RecursionError:
        raise ValueError(f"it is nested deeper than {DEEPEST} levels") from None
    if _SURROGATE.search(written):
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    _refuse_depth(document)
    return document


def mapping(value: object) -> Mapping[str, Any]:
    """A mapping in a document; empty where there is none, or something else."""
    return value if isinstance(value, Mapping) else {}


def _refuse_depth(document: Any) -> None:
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"it is nested deeper than {DEEPEST} levels")
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]


def _whole(digits: str) -> int:
    if len(digits) > 20 or not -LARGEST_WHOLE <= int(digits) < LARGEST_WHOLE:
        raise ValueError(f"a number in it has {len(digits)} digits: more than fit in 64 bits")
    return int(digits)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} in it is larger than any valid number")
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} in it is not a number")


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_number, parse_constant=_constant)
