"""Preflight findings, as the plans of VMs and machines print them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vnuma.cli.screen import sign

if TYPE_CHECKING:
    from vnuma.engine.preflight.findings import Finding


def findings_lines(findings: Sequence[Finding], checks: bool) -> list[str]:
    """The number of findings, and in full either the blocking ones or all."""
    count = {level: sum(f.severity == level for f in findings) for level in ("block", "warn", "info")}
    ids = " ".join(dict.fromkeys(finding.id for finding in findings))
    lines = [f"Checks   {count['block']} block, {count['warn']} warn: {ids}" if findings else "Checks   none"]
    if findings and not checks:
        lines.append("         in full: vnuma plan STUDY --checks")
    for finding in findings:
        if checks or finding.severity == "block":
            lines.append(f"{sign(finding.severity) or '  '}{finding.severity:5} {finding.id}  {finding.what}")
            if finding.fix:
                lines.append(f"             fix: {finding.fix}")
    return lines


def closing_line(findings: Sequence[Finding], start: str) -> str:
    """Says that a plan changes nothing, and gives the command that starts the study unless it is blocked."""
    from vnuma.engine.preflight.findings import blocking

    return "Nothing was changed." + ("" if blocking(findings) else f"  Start: {start}")
