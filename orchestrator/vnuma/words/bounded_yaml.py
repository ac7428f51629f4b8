"""Read YAML from elsewhere within limits of size and depth. Pure.

The reader's time grows with the square of open brackets, merges double, and text that looks like a number, a
date or an escape raises any Python error.
"""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from vnuma.words.bounded_json import LARGEST_WHOLE

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
        if isinstance(node, int) and not -LARGEST_WHOLE <= node < LARGEST_WHOLE:
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
