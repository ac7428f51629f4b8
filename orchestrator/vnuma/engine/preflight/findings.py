"""What preflight found: one line for each thing, worst first, and the error that lists what blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from vnuma.errors import PreflightBlocked

Severity = Literal["block", "warn", "info"]


@dataclass(frozen=True)
class Finding:
    """One thing found: the rule's id, how bad it is, what it is and what helps."""

    id: str
    severity: Severity
    what: str
    fix: str = ""


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once: what blocks before what warns, then by id."""
    order = {"block": 0, "warn": 1, "info": 2}
    return sorted(dict.fromkeys(findings), key=lambda finding: (order[finding.severity], finding.id))


def blocking(findings: Iterable[Finding]) -> list[Finding]:
    """Those that keep the study from starting."""
    return [finding for finding in findings if finding.severity == "block"]


def refuse_blocked(findings: Iterable[Finding]) -> None:
    """Raise PreflightBlocked that lists every blocking finding."""
    blocks = blocking(findings)
    if blocks:
        lines = [
            f"{finding.id} {finding.what}" + (f"\n  {finding.fix}" if finding.fix else "")
            for finding in blocks
        ]
        raise PreflightBlocked("\n".join(lines) + "\nNothing was changed.")


def refuse_shown(findings: Iterable[Finding], command: str) -> None:
    """Raise PreflightBlocked that names what blocks and stands above. `command` is what to repeat."""
    ids = list(dict.fromkeys(finding.id for finding in blocking(findings)))
    if ids:
        raise PreflightBlocked(
            f"{', '.join(ids)} {'blocks' if len(ids) == 1 else 'block'} the study. Nothing was changed.",
            fix=f"Apply the fixes listed above, then run: {command}",
        )
