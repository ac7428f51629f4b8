"""A check as plain values: the JSON document that `--baseline` reads again, and the role's result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from vnuma.checks.against_design import Difference, Drift
from vnuma.checks.finding import Finding, Severity
from vnuma.checks.fixes.tool import fix_in_tools
from vnuma.checks.result import SCHEMA, CheckResult, Group, Outlook
from vnuma.domain.vm.config_event import Author
from vnuma.words.provenance import in_json


def document(result: CheckResult) -> dict[str, Any]:
    """The whole document. Later versions add keys but never change their meaning."""
    return {
        "schema": SCHEMA,
        **in_json(result.simulated),
        "checked_at": result.checked_at,
        "sources": [asdict(source) for source in result.sources],
        "rules": [rule.id for rule in result.rules],
        "coverage": [
            {
                "source": source,
                "rules_evaluated": count,
                "rules_assumed": result.assumed_rules.get(source, 0),
                "rules": result.every_rule,
                "host_nodes_add": result.host_adds.get(source, 0),
            }
            for source, count in result.coverage.items()
        ],
        "summary": summary(result),
        "findings": [finding(group) | _declared(group, result) for group in result.groups],
        "not_evaluated": [
            {"reason": reason, "rules": list(rules), "vms": vms} for reason, rules, vms in result.reasons
        ],
        "unseen": [asdict(item) for item in result.unseen],
        "waivers": list(result.waivers),
        **_predictions(result),
        **({"drift": _drift(result.drift)} if result.drift else {}),
        "baseline": _since(result),
    }


def summary(result: CheckResult) -> dict[str, int]:
    """Counts of checks, and of VMs by their worst finding."""
    return {
        "checks_evaluated": result.checks - result.not_evaluated,
        "checks_assumed": result.assumed,
        "checks_not_evaluated": result.not_evaluated,
        "checks": result.checks,
        "vms": len(result.vms),
        **{f"vms_{severity.value}": result.by_severity.get(severity, 0) for severity in Severity},
        "vms_pass": result.passing,
        "vms_unknown": result.unknown,
        "vms_undecided": len(result.undecided),
        "vms_left_out": result.left_out,
        "findings_assumed": sum(bool(group.judged.finding.assumed) for group in result.groups),
        "findings_waived": sum(bool(group.judged.waived) for group in result.groups),
    }


def finding(group: Group) -> dict[str, Any]:
    """One finding on one object."""
    it = group.judged.finding
    return {
        "rule": it.rule,
        "severity": it.severity.value,
        "title": it.title,
        "object": {"kind": it.kind, "name": it.name, "key": it.key},
        "vms": [{"name": name, "key": key} for name, key in group.vms],
        "arm": it.arm,
        "observed": dict(it.observed),
        "consequence": it.consequence,
        "fix": _fix(it),
        "source": it.source,
        "unconfirmed": it.unconfirmed,
        "superseded_by": it.superseded_by,
        "matters": it.matters,
        "assumed": it.assumed or None,
        "waived": group.judged.waived or None,
        "change": group.judged.change,
    }


def _declared(group: Group, result: CheckResult) -> dict[str, Any]:
    """File and line of a finding's VM in the design; no key without code."""
    at = result.declared.get(group.judged.finding.key)
    return {"declared": {"file": at.file, "line": at.line}} if at else {}


def _drift(drift: Drift) -> dict[str, Any]:
    """How the site differs from the designs; values as settings have them, null: not set."""
    return {
        "designs": list(drift.designs),
        "vms_compared": drift.compared,
        "vms": [
            {
                "vm": vm.facts.name,
                "path": vm.facts.path,
                "key": vm.facts.key,
                "source": vm.source,
                "design": vm.design,
                **({"declared": asdict(vm.declared)} if vm.declared else {}),
                "differences": [_difference(one) for one in vm.differences],
            }
            for vm in drift.vms
        ],
        "only_design": [asdict(one) for one in drift.only_design],
        "only_site": [asdict(one) for one in drift.only_site],
        "vms_not_compared": [asdict(one) for one in drift.unmatched],
        "settings_not_compared": [
            {"setting": setting, "reason": why, "vms": vms}
            for (setting, why), vms in sorted(drift.not_compared.items())
        ],
    }


def _difference(one: Difference) -> dict[str, Any]:
    """`changed_by` and `changed_at` are null where `not_known` says why."""
    known = one.author if isinstance(one.author, Author) else None
    return {
        "setting": one.setting,
        "design": one.design,
        "now": one.now,
        "changed_by": known.user if known else None,
        "changed_at": known.at if known else None,
        "before": (known.before or None) if known else None,
        "not_known": None if known else one.author,
    }


def _predictions(result: CheckResult) -> dict[str, Any]:
    """What the guests of a design's VMs will see; no key where nothing is planned."""
    found = [
        {"vm": vm.name, "key": vm.key, "today": _outlook(vm.today), "planned": _outlook(vm.planned)}
        for vm in result.vms
        if vm.planned
    ]
    return {"predictions": found} if found else {}


def _outlook(outlook: Outlook | None) -> dict[str, Any] | None:
    if outlook is None:
        return None
    layouts = [
        {"vnuma_nodes": len(one.node_sizes), "node_sizes": list(one.node_sizes), "hosts": list(one.hosts)}
        for one in outlook.layouts
    ]
    return {"shape": outlook.shape, "confidence": "high" if outlook.sure else "low", "layouts": layouts}


def _fix(it: Finding) -> Mapping[str, Any]:
    fix = it.fix
    return {
        "text": fix.text,
        "arm": dict(fix.arm),
        "settings": dict(fix.settings),
        "ansible": fix.ansible,
        "as": {tool.value: text for tool, text in fix_in_tools(it).items()},
        "commands": fix.commands,
    }


def _since(result: CheckResult) -> dict[str, Any] | None:
    since = result.since
    if since is None:
        return None
    keys = ("rule", "kind", "name")
    return {
        "checked_at": since.checked_at,
        "new": since.new,
        "unchanged": since.unchanged,
        "fixed": [dict(zip(keys, item, strict=True)) for item in since.fixed],
        "not_evaluated_now": [dict(zip(keys, item, strict=True)) for item in since.unknown],
    }
