"""Findings of preflight, worst first, and the error that lists the blocking ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from vnuma.errors import PreflightBlocked

Severity = Literal["block", "warn", "info"]

_MOST_NAMES = 5


@dataclass(frozen=True)
class Finding:
    """A finding: its rule's id, severity, what is wrong and what helps."""

    id: str
    severity: Severity
    what: str
    fix: str = ""

    @classmethod
    def block(cls, id_: str, what: str, fix: str = "") -> Finding:
        """One that keeps the study from starting."""
        return cls(id_, "block", what, fix)

    @classmethod
    def warn(cls, id_: str, what: str, fix: str = "") -> Finding:
        """One that may spoil what is measured."""
        return cls(id_, "warn", what, fix)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """The distinct findings: blocking before warning, then by id."""
    order = {"block": 0, "warn": 1, "info": 2}
    return sorted(dict.fromkeys(findings), key=lambda finding: (order[finding.severity], finding.id))


def blocking(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that prevent the study from starting."""
    return [finding for finding in findings if finding.severity == "block"]


def refuse_blocked(findings: Iterable[Finding]) -> None:
    """Raise PreflightBlocked with every blocking finding."""
    blocks = blocking(findings)
    if blocks:
        lines = [
            f"{finding.id} {finding.what}" + (f"\n  {finding.fix}" if finding.fix else "")
            for finding in blocks
        ]
        raise PreflightBlocked("\n".join(lines) + "\nNothing was changed.")


def refuse_shown(findings: Iterable[Finding], command: str) -> None:
    """Raise PreflightBlocked for findings that were already printed. `command` is what to repeat."""
    ids = list(dict.fromkeys(finding.id for finding in blocking(findings)))
    if ids:
        raise PreflightBlocked(
            f"{', '.join(ids)} {'blocks' if len(ids) == 1 else 'block'} the study. Nothing was changed.",
            fix=f"Apply the fixes listed above, then run: {command}",
        )


def some_of(names: tuple[str, ...]) -> str:
    """The first names, and how many more there are."""
    listed = ", ".join(names[:_MOST_NAMES])
    return listed if len(names) <= _MOST_NAMES else f"{listed} and {len(names) - _MOST_NAMES} more"
