"""Accepted findings: by rule and object, with a reason and an end date."""

from __future__ import annotations

import re
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import Field, ValidationError

from vnuma.checks.rule import Finding
from vnuma.checks.rules.catalogue import find_rule
from vnuma.errors import InputError, text_of
from vnuma.words.bounded_yaml import NotYaml, read_yaml
from vnuma.words.validation import Strict, messages


class Waiver(Strict):
    """One accepted finding. `object` is a name, an inventory path or a pattern such as sql-dw-*."""

    rule: str
    object: str = Field(min_length=1)
    reason: str = Field(min_length=1)
    until: date
    """The last day on which it is valid."""

    def covers(self, finding: Finding, path: str) -> bool:
        """Whether it covers this finding's rule, and its object or the VM that it was seen from."""
        names = (finding.name, finding.vm, path)
        return finding.rule == self.rule and any(fnmatchcase(name, self.object) for name in names)


def in_design(text: str, vm: str) -> tuple[Waiver, ...]:
    """The waivers of a mark next to a VM, one per rule: `vnuma:ignore=T05,T11 until 2027-01-31: reason`.

    Raises InputError for anything else, since a mistyped waiver would have no effect.
    """
    found = _IN_DESIGN.search(text)
    if not found:
        raise InputError(
            f"{vm}: {text[:80]!r} is not a waiver with a rule, a last day and a reason.", fix=_BESIDE
        )
    try:
        until = date.fromisoformat(found["until"])
    except ValueError as error:
        raise InputError(f"{vm}: {found['until']} is not a day.", fix=_BESIDE) from error
    rules = [find_rule(rule).id for rule in found["rules"].split(",")]
    return tuple(Waiver(rule=rule, object=vm, reason=found["reason"], until=until) for rule in rules)


_IN_DESIGN = re.compile(
    r"(?P<rules>[A-Za-z][0-9]{2}(?:,[A-Za-z][0-9]{2}){0,9})\s+until\s+(?P<until>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"\s*:\s*(?P<reason>\S.{0,300})"
)
_BESIDE = "Write: # vnuma:ignore=T05 until 2027-01-31: reason"


class _File(Strict):
    waivers: list[Waiver]


def load(path: Path) -> tuple[Waiver, ...]:
    """Read a waivers file (YAML). Raises InputError with the entry and the problem."""
    try:
        document = read_yaml(text_of(path))
    except NotYaml as error:  # YAML itself refuses the date 2027-13-01
        raise InputError(f"{path} is not YAML: {error} (line {error.line}).", fix=_EXAMPLE) from error
    if not isinstance(document, dict) or "waivers" not in document:
        raise InputError(f"{path} has no list `waivers:`.", fix=_EXAMPLE)
    try:
        waivers = _File.model_validate(document).waivers
    except ValidationError as error:
        raise InputError(f"{path}: {messages(error)}.", fix=_EXAMPLE) from None
    return tuple(_known(waiver, path) for waiver in waivers)


def _known(waiver: Waiver, path: Path) -> Waiver:
    try:
        return waiver.model_copy(update={"rule": find_rule(waiver.rule).id})
    except InputError as error:
        raise InputError(f"{path}: {error.what}", fix=error.fix) from None


_EXAMPLE = "Write each entry as {rule: T11, object: sql-dw-*, reason: ..., until: 2027-03-31}."
