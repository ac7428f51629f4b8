"""Read JSON and YAML from elsewhere within limits of size and depth. Pure.

Python's JSON reader accepts NaN, integers of any length and strings that no encoding can write; each fails
much later, during a report. The YAML reader's time grows with the square of open brackets, merges double, and
text that looks like a number, a date or an escape raises any Python error.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

DEEPEST = 64
"""Most levels of lists and mappings; vnuma's own documents have fewer than ten."""

_MEGABYTE = 1_000_000
_LARGEST_WHOLE = 2**63
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
    if len(digits) > 20 or not -_LARGEST_WHOLE <= int(digits) < _LARGEST_WHOLE:
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


MOST_LETTERS = 150_000
"""Takes some seconds to read. The largest study so far has 10,000 characters."""

MOST_BRACKETS = 160
"""Most brackets open at once."""

_DIGITS = re.compile(r"\d{1000,}")
_FAILURES = (YAMLError, ValueError, OverflowError, AttributeError, TypeError, LookupError, AssertionError)


class NotYaml(ValueError):
    """An unreadable text, with the problem in a few words; `line` counts from 1."""

    def __init__(self, problem: str, line: int = 1) -> None:
        super().__init__((problem.splitlines() or ["it is not valid YAML"])[0])
        self.line = line


def read_yaml(text: str) -> Any:
    """The document; mappings and lists have the lines of their keys. Raises NotYaml."""
    if len(text) > MOST_LETTERS:
        raise NotYaml(f"the file is larger than {MOST_LETTERS:,} characters")
    if _open_brackets(text) > MOST_BRACKETS:
        raise NotYaml("it is nested too deeply")
    if long := _DIGITS.search(text):
        raise NotYaml(f"a number of {len(long[0]):,} digits", text.count("\n", 0, long.start()) + 1)
    yaml = YAML(typ="rt")
    yaml.allow_duplicate_keys = False
    try:
        document = yaml.load(text)
        _refuse_numbers(document)
    except RecursionError:
        raise NotYaml("it is nested too deeply, or refers to itself") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise NotYaml(error.problem or str(error), mark.line + 1 if mark else 1) from None
    except ReaderError as error:
        raise NotYaml("a character that YAML forbids", text.count("\n", 0, error.position) + 1) from None
    except _FAILURES as error:
        raise NotYaml(_why(error)) from None
    return document


def _refuse_numbers(document: Any) -> None:
    """Raise ValueError for integers that do not fit in 64 bits: some cannot even be written in a message."""
    seen, left = set[int](), [document]
    while left:
        node = left.pop()
        if isinstance(node, int) and not -_LARGEST_WHOLE <= node < _LARGEST_WHOLE:
            raise ValueError(f"a number in it has {node.bit_length()} bits: more than 64")
        if isinstance(node, dict | list) and id(node) not in seen:
            seen.add(id(node))
            left += [*node, *node.values()] if isinstance(node, dict) else node


def _why(error: Exception) -> str:
    if isinstance(error, YAMLError | ValueError) and str(error):  # an invalid date or number
        return str(error)
    return "a merge, tag or escape in it cannot be resolved"


def _open_brackets(text: str) -> int:
    """Most brackets open at once, including quoted ones."""
    depth = most = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
        most = max(most, depth)
    return most
