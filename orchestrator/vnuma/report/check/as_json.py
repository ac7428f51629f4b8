"""A check as one JSON document: what `--baseline` reads again."""

from __future__ import annotations

import json

from vnuma import __version__
from vnuma.checks.document import document
from vnuma.checks.result import SCHEMA, CheckResult


def as_json(result: CheckResult) -> str:
    """The document as text."""
    return (
        json.dumps({"schema": SCHEMA, "vnuma": __version__} | document(result), indent=2, ensure_ascii=False)
        + "\n"
    )
