"""A check as SARIF 2.1.0, for tools that collect findings from many checkers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from vnuma import __version__
from vnuma.checks.against_design import DRIFT
from vnuma.checks.result import CheckResult, Group
from vnuma.checks.rule import Rule, Severity
from vnuma.domain.vm.estate import Declared
from vnuma.report.check.words import DRIFT_RULE, DriftRow, drift_rows
from vnuma.words.provenance import in_json

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.BLOCK: "error", Severity.WARN: "warning", Severity.INFO: "note"}


def as_sarif(result: CheckResult) -> str:
    """The log's text. Objects are logical locations with the name and key of a VM, host or cluster; those
    declared in code have file and line.
    """
    index = {rule.id: number for number, rule in enumerate(result.rules)}
    run = {
        "tool": {
            "driver": {
                "name": "vnuma",
                "version": __version__,
                "rules": [*map(_rule, (*result.rules, *([DRIFT_RULE] if result.drift else [])))],
            }
        },
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": list(_notes(result))}],
        "results": [
            *(_result(group, index, result) for group in result.groups),
            *_fixed(result, index),
            *(_drift(row, len(result.rules)) for row in drift_rows(result.drift)),
        ],
        "properties": {
            **in_json(result.simulated),
            "checkedAt": result.checked_at,
            "checks": result.checks,
            "notEvaluated": result.not_evaluated,
        },
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.consequence},
        "help": {"text": f"Found when: {rule.condition}. Fix: {rule.fix}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }
    link = next((source for source in rule.sources if source.startswith("https://")), None)
    return described | ({"helpUri": link} if link else {})


def _result(group: Group, index: Mapping[str, int], result: CheckResult) -> dict[str, Any]:
    it = group.judged.finding
    observed = "; ".join(f"{name} {value}" for name, value in it.observed.items())
    parts = [f"{it.name}: {it.title}", f"({observed})." if observed else ".", it.consequence]
    parts += [f"It {it.assumed}."] if it.assumed else []
    parts.append(f"Fix: {it.fix.text}")
    found: dict[str, Any] = {
        "ruleId": it.rule,
        "ruleIndex": index[it.rule],
        "level": _LEVELS[it.severity],
        "message": {"text": " ".join(parts).replace(" .", ".")},
        "locations": [_location(it.name, it.key, it.kind, result.declared.get(it.key))],
        "partialFingerprints": {"vnuma/v1": f"{it.rule}|{it.kind}|{it.key}"},
        "properties": {
            "vms": [name for name, _ in group.vms],
            "observed": dict(it.observed),
            "supersededBy": it.superseded_by,
            "unconfirmed": it.unconfirmed,
            "assumed": it.assumed or None,
        },
    }
    if group.judged.waived:
        found["suppressions"] = [{"kind": "external", "justification": group.judged.waived}]
    if result.since is not None:
        found["baselineState"] = group.judged.change or "new"
    return found


def _drift(row: DriftRow, index: int) -> dict[str, Any]:
    """A VM that is not as designed, at its line of the design."""
    observed = f" ({row.observed})" if row.observed else ""
    text = f"{row.name}: {row.title}{observed}. {DRIFT_RULE.consequence} Fix: {DRIFT_RULE.fix}"
    return {
        "ruleId": DRIFT,
        "ruleIndex": index,
        "level": _LEVELS[Severity.WARN],
        "message": {"text": text},
        "locations": [_location(row.name, row.key, "vm", row.declared)],
        "partialFingerprints": {"vnuma/v1": f"{DRIFT}|vm|{row.key}"},
        "properties": {"vms": [row.name], "design": row.design},
    }


def _fixed(result: CheckResult, index: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Findings of an earlier check that are gone."""
    for rule, kind, name in result.since.fixed if result.since else ():
        if rule in index:
            yield {
                "ruleId": rule,
                "ruleIndex": index[rule],
                "level": "none",
                "message": {"text": f"{name}: no longer found."},
                "locations": [{"logicalLocations": [{"name": name, "kind": kind}]}],
                "baselineState": "absent",
            }


def _notes(result: CheckResult) -> Iterator[dict[str, Any]]:
    """What could not be read, and rules that were not evaluated: neither passed nor failed."""
    for item in result.unseen:
        yield _note(f"{item.kind} {item.name} was not seen: {item.why}")
    for reason, rules, vms in result.reasons:
        yield _note(f"Not evaluated on {vms} VMs, because {reason}: {', '.join(rules)}", rules)
    for words in result.waivers:
        yield _note(words)
    for one in result.drift.unmatched if result.drift else ():
        yield _note(f"VM {one.name} was not compared with the design: {one.why}")


def _note(text: str, rules: Sequence[str] = ()) -> dict[str, Any]:
    noted: dict[str, Any] = {"level": "warning", "message": {"text": text}}
    return noted | ({"associatedRule": {"id": rules[0]}} if len(rules) == 1 else {})


def _location(name: str, key: str, kind: str, declared: Declared | None) -> dict[str, Any]:
    """An object by its name, with file and line if a design's code declares it."""
    logical = {"name": name, "fullyQualifiedName": key or name, "kind": kind}
    if declared is None:
        return {"logicalLocations": [logical]}
    place = {"artifactLocation": {"uri": quote(declared.file)}, "region": {"startLine": declared.line}}
    return {"physicalLocation": place, "logicalLocations": [logical]}
