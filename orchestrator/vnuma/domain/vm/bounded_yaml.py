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

MOST_LETTERS = 150_000
"""Takes some seconds to read. The largest study so far has 10,000 characters."""

MOST_BRACKETS = 160
"""Most brackets open at once."""

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
    yaml = YAML(typ="rt")
    yaml.allow_duplicate_keys = False
    try:
        return yaml.load(text)
    except RecursionError:
        raise NotYaml("it is nested too deeply, or refers to itself") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise NotYaml(error.problem or str(error), mark.line + 1 if mark else 1) from None
    except ReaderError as error:
        raise NotYaml("a character that YAML forbids", text.count("\n", 0, error.position) + 1) from None
    except _FAILURES as error:
        raise NotYaml(_why(error)) from None


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
