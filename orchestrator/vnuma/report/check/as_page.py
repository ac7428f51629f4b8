"""A check as one HTML page that works offline and shows thousands of VMs, one page at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from vnuma import __version__
from vnuma.checks.against_design import Drift
from vnuma.checks.fix_as import Target, Tool, ansible, fix_in_tools
from vnuma.checks.result import CheckedVm, CheckResult, Judged
from vnuma.checks.rule import Finding, Severity
from vnuma.report.check import words as texts
from vnuma.report.page.page import filled
from vnuma.words.plain_text import counted, gigabytes
from vnuma.words.provenance import banner

WITHOUT_SCRIPTS = 100
"""VMs listed in the page itself, for a browser without scripts."""

MOST_DRIFTED = 100
"""Most VMs with drift in the page."""

NO_SIGN = "○"
"""Before what was not evaluated."""

SIGNS = {Severity.BLOCK: "■", Severity.WARN: "▲", Severity.INFO: "●"}


def as_page(result: CheckResult) -> str:
    """The page's text."""
    rules = [
        (rule, severity, objects, SIGNS[severity], texts.mixed_words(result, rule.id))
        for rule, severity, objects in result.by_rule
    ]
    return filled(
        "check.html.j2",
        "check.css",
        "check.js",
        result=result,
        banner=banner(result.simulated),
        lead=_lead(result),
        rules=rules,
        most=max((objects for _, _, objects, _, _ in rules), default=1),
        reasons=[
            (counted(len(names), "rule"), counted(vms, "VM"), why) for why, names, vms in result.reasons
        ],
        unseen=texts.unseen_words(result),
        drift=_drift(result.drift) if result.drift else None,
        title=_title(result),
        estate=_estate(result),
        counts=[
            (severity.value, SIGNS[severity], result.by_severity.get(severity, 0)) for severity in Severity
        ],
        passing=result.passing,
        evaluated=texts.evaluated_words(result),
        undecided=texts.undecided_words(result),
        not_evaluated=sum(bool(vm.not_evaluated) for vm in result.vms),
        clusters=sorted({vm.cluster for vm in result.vms if vm.cluster}),
        first=result.vms[:WITHOUT_SCRIPTS],
        signs=SIGNS,
        no_sign=NO_SIGN,
        gigabytes=gigabytes,
        data=Markup(_escaped(_data(result))),
        version=__version__,
    )


def _drift(drift: Drift) -> dict[str, Any]:
    """The drift as text: a line for each differing setting, of the first VMs in a large estate."""
    found = [
        (vm.facts.name, f"{texts.difference_words(one)}; {texts.author_words(one)}")
        for vm in drift.vms[:MOST_DRIFTED]
        for one in vm.differences
    ]
    left = len(drift.vms) - MOST_DRIFTED
    more = [f"{counted(left, 'more VM')}: vnuma check --format json shows all"] if left > 0 else []
    notes = [*more, *texts.one_sided_words(drift)]
    silent = [f"not compared: {words}" for words in texts.silent_words(drift)]
    return {"head": texts.drift_headline(drift), "vms": found, "notes": [*notes, *silent]}


def _title(result: CheckResult) -> str:
    names = ", ".join(source.name for source in result.sources)
    count = result.by_severity
    words = ", ".join(f"{count.get(severity, 0):,} {severity.value}" for severity in Severity)
    return f"{'SIMULATED: ' if result.simulated else ''}Design check of {names}: {words}"


def _estate(result: CheckResult) -> str:
    hosts, clusters = (sum(getattr(s, part) for s in result.sources) for part in ("hosts", "clusters"))
    vms = counted(len(result.vms), "VM")
    left = f" ({result.left_out:,} more left out by the filters)" if result.left_out else ""
    return f"{vms} on {counted(hosts, 'host')} in {counted(clusters, 'cluster')}{left}"


def _lead(result: CheckResult) -> list[tuple[str, bool]]:
    """The first sentence, in pieces: text, and whether it is bold. What is not known comes first."""
    count = result.by_severity
    block, warn, info = (count.get(severity, 0) for severity in Severity)
    passed, unknown, vms = result.passing, len(result.undecided), len(result.vms)
    of_vms = f"little is known about {unknown:,} of {counted(vms, 'VM')}"
    if unknown and not (block or passed):
        return [(f"Too {of_vms}.", True), (f" {_of_others(warn, info)}", False)]
    rest = [f"{info:,} {_have(info)} only notes"] if info else []
    if passed or not (block or warn or info or unknown):
        rest.append(f"{passed:,} {'passes' if passed == 1 else 'pass'} everything that could be checked")
    if unknown:
        rest.append(f"too {of_vms}")
    pieces = [
        (counted(block, "VM") if block else "No VM", True),
        (f" {_have(block or 1)} a blocking fault in what the guest sees or what it may use. ", False),
        ((f"{warn:,} more" if block else counted(warn, "VM")) if warn else "", True),
        (
            "; ".join([f" {_have(warn)} warnings", *rest] if warn else rest) + ("." if warn or rest else ""),
            False,
        ),
    ]
    return [piece for piece in pieces if piece[0]]


def _of_others(warn: int, info: int) -> str:
    """What the few rules found that were evaluated."""
    found = [
        f"{counted(number, 'VM')} {_have(number)} {what}"
        for number, what in ((warn, "warnings"), (info, "only notes"))
        if number
    ]
    return f"Of what was evaluated: {', '.join(found) or 'no finding'}."


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _data(result: CheckResult) -> dict[str, Any]:
    """What the script shows, with everything that repeats said once."""
    findings: dict[str, int] = {}
    reasons: dict[str, int] = {}
    vms = [_vm(vm, findings, reasons) for vm in result.vms]
    return {
        "rules": {
            rule.id: [rule.title, rule.consequence, rule.sources[0] if rule.sources else ""]
            for rule in result.rules
        },
        "findings": list(map(json.loads, findings)),
        "unseen": list(map(json.loads, reasons)),
        "vms": vms,
    }


def _vm(vm: CheckedVm, findings: dict[str, int], reasons: dict[str, int]) -> list[Any]:
    """A VM; each different finding and list of reasons is numbered by its first use, and named by that."""
    worst = vm.worst
    return [
        vm.name,
        vm.path.rpartition("/")[0],
        vm.shape,
        gigabytes(vm.memory_mb) if vm.memory_mb else "",
        vm.host,
        vm.cluster,
        vm.release,
        vm.guest,
        worst.value if worst else "unknown" if vm.undecided else "",
        [findings.setdefault(json.dumps(_finding(item)), len(findings)) for item in vm.findings],
        reasons.setdefault(json.dumps(_reasons(vm)), len(reasons)),
        vm.passed,
        Target.of_key(vm.name, vm.key).uuid,
    ]


def _finding(item: Judged) -> list[Any]:
    it = item.finding
    about = "" if it.kind == "vm" else f"{it.kind} {it.name}"
    fix = it.fix
    return [
        it.rule,
        it.severity.value,
        about,
        list(it.observed.items()),
        fix.text,
        [[tool.label, text] for tool, text in _pastes(it).items()],
        fix.commands,
        " ".join(filter(None, (f"It {it.assumed}." if it.assumed else "", it.matters))),
        it.superseded_by,
        item.waived,
        item.change or "",
        it.arm,
    ]


def _pastes(it: Finding) -> Mapping[Tool, str]:
    """The fix by tool, shared by many VMs: the UUID is filled in. For a study's arm, only Ansible's."""
    target = Target.of(it)
    written = fix_in_tools(it, Target("", _UUID) if target.uuid else target)
    if written or not it.fix.ansible:
        return written
    return {Tool.ANSIBLE: "\n".join(ansible(it.fix, target).lines)}


_UUID = "VM-UUID"
"""Placeholder for the VM's UUID in a shared text; check.js replaces it."""


def _reasons(vm: CheckedVm) -> Sequence[Any]:
    """Reasons with the rules that they prevented."""
    grouped: dict[str, list[str]] = {}
    for rule, why in sorted(vm.not_evaluated.items()):
        grouped.setdefault(why, []).append(rule)
    return list(grouped.items())


def _escaped(data: dict[str, Any]) -> str:
    """JSON that cannot end its surrounding element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
