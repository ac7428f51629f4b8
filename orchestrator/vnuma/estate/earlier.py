"""An earlier check from its JSON document: findings, objects and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnuma.checks.result import SCHEMA, Key
from vnuma.errors import InputError


@dataclass(frozen=True)
class Earlier:
    """Findings by their identity, each with its object's name."""

    checked_at: str
    found: Mapping[Key, str]
    sources: frozenset[str] = frozenset()
    """The names of what was checked: vCenters or files."""


def from_document(document: Any, path: Path) -> Earlier:
    """The findings in a check's JSON document. Raises InputError for any other file."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(
            f"{path} is neither a check nor a snapshot of an inventory.",
            fix="Write one: vnuma check ... --format json > FILE",
        )
    try:
        found = {
            (item["rule"], item["object"]["kind"], item["object"]["key"]): item["object"]["name"]
            for item in document["findings"]
        }
        sources = frozenset(str(source["name"]) for source in document["sources"])
        return Earlier(str(document["checked_at"]), found, sources)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: {error} is missing.", fix="Create it again.") from error
