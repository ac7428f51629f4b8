"""A check's fixes as one text for a tool: a block for each VM, worst VM first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vnuma.checks.fix_as import Target, Tool, fix_as, in_comment
from vnuma.checks.result import CheckedVm, CheckResult
from vnuma.checks.rule import Finding, Fix, Severity
from vnuma.words.provenance import banner


def as_fixes(result: CheckResult, tool: Tool) -> str:
    """Fixes of blocking and warning findings on VMs that a setting solves, without waived ones."""
    about = f"{tool.label}: fixes of what blocks or warns. Read them; check again after applying them."
    lines = [f"# {in_comment(about)}"]
    if result.simulated:
        lines.append(f"# {in_comment(banner(result.simulated) or '')}")
    blocks = [block for vm in result.vms if (block := list(_block(vm, tool)))]
    for block in blocks:
        lines += ["", *(["---"] if tool is Tool.ANSIBLE else []), *block]
    if not blocks:
        lines.append("# No finding here is fixed by a setting of a VM.")
    return "\n".join(lines) + "\n"


def _block(vm: CheckedVm, tool: Tool) -> Iterator[str]:
    open_ = [item.finding for item in vm.findings if not item.waived]
    found = [it for it in open_ if it.severity is not Severity.INFO and it.fix.change and it.kind == "vm"]
    if not found:
        return
    merged, used, later = _merged(found)
    yield f"# {in_comment(_named(vm))}: {', '.join(it.rule for it in used)}"
    yield fix_as(tool, merged, Target.of(used[0]))
    for it, why in later:
        yield f"# {it.rule} later: {why}"


def _named(vm: CheckedVm) -> str:
    """The VM by its path, and by its name if the path does not end in it: `sql16 (module.sql.vm[0])`."""
    path = vm.path or vm.name
    return path if path.rpartition("/")[2] == vm.name else f"{vm.name} ({path})"


def _merged(found: list[Finding]) -> tuple[Fix, list[Finding], list[tuple[Finding, str]]]:
    """One fix for several findings, and those left for later: they wait for another rule, or conflict."""
    used, later = list[Finding](), list[tuple[Finding, str]]()
    fix = Fix("")
    for it in found:
        if it.superseded_by in {other.rule for other in found}:
            later.append((it, f"{it.superseded_by} comes first."))
        elif clash := _clash(fix.settings, it.fix.settings) or _clash(fix.arm, it.fix.arm):
            later.append((it, f"another fix sets {in_comment(clash)} otherwise; check again."))
        else:
            used.append(it)
            fix = replace(it.fix, arm={**fix.arm, **it.fix.arm}, settings={**fix.settings, **it.fix.settings})
    return fix, used, later


def _clash(taken: Mapping[str, object], wanted: Mapping[str, object]) -> str:
    return next((name for name in wanted if name in taken and taken[name] != wanted[name]), "")
