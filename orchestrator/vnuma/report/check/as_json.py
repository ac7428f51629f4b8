"""A check as one JSON document: what `--baseline` reads again."""

from __future__ import annotations

from pydantic_core import to_json

from vnuma import __version__
from vnuma.checks.result import SCHEMA, CheckResult, document


def as_json(result: CheckResult) -> str:
    """The document as text. Python's own encoder takes three times as long when indenting."""
    made = {"schema": SCHEMA, "vnuma": __version__} | document(result)
    return to_json(made, indent=2).decode() + "\n"
