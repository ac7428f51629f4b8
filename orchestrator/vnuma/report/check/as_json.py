"""A check as one JSON document: what `--baseline` reads again."""

from __future__ import annotations

import json

from vnuma.checks.document import document
from vnuma.checks.result import CheckResult


def as_json(result: CheckResult) -> str:
    """The document as text."""
    return json.dumps(document(result), indent=2, ensure_ascii=False) + "\n"
