"""What a tool should change, and what it cannot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from vnuma.checks.rule import Finding
from vnuma.domain.vm.setting import Value

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)


@dataclass(frozen=True)
class Target:
    """The VM to change, by its instance UUID if it has one, else by name."""

    name: str
    uuid: str = ""

    @staticmethod
    def of(finding: Finding) -> Target:
        """The VM of a finding. A design's VM, or an export's without UUIDs, has only its name."""
        return Target.of_key(finding.vm, finding.vm_key)

    @staticmethod
    def of_key(name: str, key: str) -> Target:
        """A VM by its name and key."""
        last = key.rpartition("/")[2]
        return Target(name, last if _UUID.fullmatch(last) else "")


@dataclass(frozen=True)
class Written:
    """Lines for a tool, and settings that it cannot change, each with the reason."""

    lines: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    shuts_down: bool = False
    """Whether the tool shuts the VM down itself for settings that require it."""


def as_text(value: Value) -> str:
    """A value for extraConfig or a command line."""
    if isinstance(value, bool):
        return str(value).upper()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def in_comment(text: str) -> str:
    """The text on one line, so that it can neither end a comment nor control a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
