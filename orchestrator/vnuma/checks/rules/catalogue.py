"""All rules, and one or all of them explained, on the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from vnuma.checks.rule import FAMILIES, Rule
from vnuma.checks.rules import (
    affinity,
    measurement,
    memory_and_limits,
    sqlserver,
    topology_host,
    topology_release,
    topology_shape,
    windows,
)
from vnuma.errors import InputError
from vnuma.words.plain_text import filled
from vnuma.words.provenance import in_json

_MODULES = (
    *(topology_shape, topology_release, topology_host, affinity, memory_and_limits, windows),
    *(sqlserver, measurement),
)


def rules_in(module: ModuleType) -> Iterator[Rule]:
    """The module's rules. Raises TypeError for one that decorates no check."""
    for value in vars(module).values():
        if isinstance(value, Rule):
            if not value.is_complete:
                raise TypeError(
                    f"Rule {value.id} in {module.__name__} decorates no check: def it below @rule"
                )
            yield value


_FAMILY_ORDER = tuple(FAMILIES)

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (rule for module in _MODULES for rule in rules_in(module)),
        key=lambda rule: (_FAMILY_ORDER.index(rule.id[0]), rule.id),
    )
)
"""All rules by family and number."""

BY_ID = {rule.id: rule for rule in RULES}


DECIDING = frozenset(("T01", "T05", "T06", "T08", "T09", "T10", "T11", "T12", "T13"))
"""Rules on whether vCPUs, memory and sockets suit the host's nodes, and the guest sees them. A VM passes only
if each of them was evaluated.
"""


def find_rule(rule_id: str) -> Rule:
    """The rule with that id, in any case. Raises InputError."""
    name = rule_id.strip().upper()
    found = BY_ID.get(name)
    if found is None:
        meant = f"{name[:1]}0{name[1:]}"
        close = f"Is {meant} meant? " if meant in BY_ID else ""
        raise InputError(f"Rule {rule_id} does not exist.", fix=f"{close}List all: vnuma check --explain all")
    return found


WIDTH = 80
_INDENT = 11


def document(rule_id: str) -> dict[str, Any]:
    """One rule, or every one with `all`, as `vnuma check --explain RULE --format json`. Raises InputError."""
    everything = rule_id.strip().lower() == "all"
    rules = RULES if everything else (find_rule(rule_id),)
    return {"schema": "vnuma/rules/1", **in_json(None), "rules": [_fields(rule) for rule in rules]}


def _fields(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "family": rule.family,
        "title": rule.title,
        "severity": rule.severity.value,
        "severity_in_study": rule.severity_for(studied=True).value,
        "concerns": concerns(rule),
        "condition": rule.condition,
        "consequence": rule.consequence,
        "fix": rule.fix,
        "needs": sorted(rule.needs),
        "unconfirmed": rule.unconfirmed,
        "waits_for": [{"rule": other, "reason": reason} for other, reason in rule.yields_to.items()],
        "sources": list(rule.sources),
        "related": list(rule.related),
    }


def explain(rule_id: str, width: int = WIDTH) -> str:
    """One rule as text, `width` wide except for addresses; `all` lists them. Raises InputError."""
    if rule_id.strip().lower() == "all":
        return "\n".join(line for rule in RULES for line in _listed(rule, width))
    rule = find_rule(rule_id)
    lines = [filled(f"{rule.id}  {rule.title}", width), filled(f"{severity(rule)} | {concerns(rule)}", width)]
    for heading, text in (
        ("Found when", rule.condition),
        ("Why", rule.consequence),
        ("Fix", rule.fix),
        ("Reads", needs(rule)),
        ("Evidence", evidence(rule)),
        ("Waits for", " ".join(rule.yields_to.values())),
        ("Sources", "\n".join(rule.sources)),
        ("Related", ", ".join(f"{other} ({BY_ID[other].title})" for other in rule.related)),
    ):
        if text:
            wrapped = text if heading == "Sources" else filled(text, width - _INDENT)
            lines.append(f"{heading:{_INDENT}}" + wrapped.replace("\n", "\n" + " " * _INDENT))
    return "\n".join(lines)


def _listed(rule: Rule, width: int) -> list[str]:
    head = f"{rule.id}  {rule.severity.value:5}  "
    return filled(head + rule.title, width, then=" " * len(head)).split("\n")


def severity(rule: Rule) -> str:
    """Its severity, and that on a VM under study where it differs."""
    if rule.in_study and rule.in_study is not rule.severity:
        return f"{rule.severity}, {rule.in_study} on a VM under study"
    return rule.severity.value


def concerns(rule: Rule) -> str:
    """Releases and editions; releases only for rules about ESXi."""
    releases = str(rule.applies) if rule.family in _ABOUT_ESXI else ""
    return ", ".join(filter(None, (releases, rule.editions))) or "always"


_ABOUT_ESXI = {"topology", "affinity", "memory", "api"}


def evidence(rule: Rule) -> str:
    """What the rule rests on."""
    if rule.unconfirmed:
        return "General knowledge that the sources do not state in full: a warning at most."
    return "Stated in the sources below, or derived from them."


_PARTS = {
    "vm": "the VM",
    "host": "its host",
    "cluster": "the cluster",
    "guest": "Windows in the guest",
    "sql": "SQL Server (--sql)",
    "edition": "SQL Server's edition (--sql, or a design's)",
    "study": "the study",
    "placement": "placement on the host (esxtop, --evidence)",
    "waits": "vCenter's counters of the VM (--vm)",
}


def needs(rule: Rule) -> str:
    """The parts of the subject that it reads."""
    return ", ".join(words for part, words in _PARTS.items() if part in rule.needs)
