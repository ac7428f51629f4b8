"""The design check of one VM, as the role asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vnuma.checks.document import document
from vnuma.checks.finding import Severity
from vnuma.checks.result import CheckResult
from vnuma.domain.vm.plain_text import counted
from vnuma.engine.access.target import Target
from vnuma.engine.design_check.check import Asked, run_check
from vnuma.engine.design_check.estates import read_target
from vnuma.engine.design_check.sql_facts import SqlServers
from vnuma.errors import InputError, ThresholdMet
from vnuma.estate.waivers import load

NEVER = "never"


def design_check(target: Target, options: dict[str, Any]) -> dict[str, Any]:
    """The check's document; with `failed` where something as bad as `fail_on` says was found."""
    asked = Asked(
        sql=SqlServers([target]) if options["sql"] else None,
        waivers=load(Path(options["waivers"])) if options["waivers"] else (),
    )
    result = run_check([read_target(target)], asked)
    if not result.vms:
        why = next((item.why for item in result.unseen if item.kind == "vm"), "it is a template")
        raise InputError(f"{target.vm} could not be checked: {why}.", fix="vnuma doctor checks its vCenter.")
    return {"changed": False, "check": document(result)} | _verdict(result, options["fail_on"])


def _verdict(result: CheckResult, fail_on: str) -> dict[str, Any]:
    if fail_on == NEVER:
        return {}
    found = list(result.open(Severity(fail_on)))
    if not found:
        return {}
    lines = [
        f"{group.judged.finding.rule} {group.judged.finding.name}: {group.judged.finding.title}"
        for group in found
    ]
    return {
        "failed": True,
        "msg": f"{counted(len(found), 'finding')} of severity {fail_on} or worse.\n" + "\n".join(lines),
        "exit_code": ThresholdMet.exit_code,
        "error": ThresholdMet.__name__,
    }
