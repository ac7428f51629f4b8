"""The rules' documentation: one on the terminal, all as a page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from textwrap import wrap
from typing import Any

from vnuma.checks.finding import Severity
from vnuma.checks.rule import FAMILIES, Rule
from vnuma.checks.rules.catalogue import BY_ID, RULES, find_rule
from vnuma.domain.vm.provenance import in_json

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
        "concerns": _concerns(rule),
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
    lines = [*wrap(f"{rule.id}  {rule.title}", width), *wrap(f"{_severity(rule)} | {_concerns(rule)}", width)]
    for heading, text in (
        ("Found when", rule.condition),
        ("Why", rule.consequence),
        ("Fix", rule.fix),
        ("Reads", _needs(rule)),
        ("Evidence", _evidence(rule)),
        ("Waits for", " ".join(rule.yields_to.values())),
    ):
        lines += _paragraph(heading, text, width)
    lines += [f"{'Sources' if index == 0 else '':{_INDENT}}{url}" for index, url in enumerate(rule.sources)]
    lines += _paragraph(
        "Related", ", ".join(f"{other} ({BY_ID[other].title})" for other in rule.related), width
    )
    return "\n".join(lines)


def _listed(rule: Rule, width: int) -> list[str]:
    head = f"{rule.id}  {rule.severity.value:5}  "
    return wrap(head + rule.title, width, subsequent_indent=" " * len(head), drop_whitespace=True)


def as_markdown() -> str:
    """Every rule as a page: docs/reference/rules.md."""
    parts = [_introduction()]
    for letter, rules in groupby(RULES, key=lambda rule: rule.id[0]):
        parts.append(f"## {_HEADINGS[FAMILIES[letter]]}\n")
        parts += [_section(rule) for rule in rules]
    return "\n".join(parts)


_HEADINGS = {
    "topology": "Topology",
    "affinity": "CPU affinity and scheduling",
    "memory": "Memory, power, placement",
    "api": "vSphere's limits",
    "windows": "Windows",
    "sqlserver": "SQL Server",
    "measurement": "Measuring",
}


def _introduction() -> str:
    counts = ", ".join(
        f"{sum(rule.severity is severity for rule in RULES)} {severity}" for severity in Severity
    )
    return f"""# Design rules

{len(RULES)} rules ({counts}). Each comes out as pass, fail or not evaluated; what could
not be read is never a pass. A rule passes where it does not apply. `vnuma check --explain T14`
shows one of them. [rule-sources.md](rule-sources.md) says which source each can be evaluated from. This page
is written from the rules: `vnuma check --explain markdown`.

Severity: **block** spoils or breaks what is planned, **warn** may, **info** is worth knowing. On a
VM under study some rules weigh otherwise. *Unconfirmed* rules rest on general knowledge and warn
at most.
"""


def _section(rule: Rule) -> str:
    lines = [
        f"### {rule.id} {rule.title}",
        "",
        f"**{_severity(rule)}** · {_concerns(rule)}",
        "",
        f"- Found when: {rule.condition}.",
        f"- Why: {rule.consequence}",
        f"- Fix: {rule.fix}",
        f"- Reads: {_needs(rule)}.",
    ]
    if rule.unconfirmed:
        lines.append(f"- Evidence: {_evidence(rule)}")
    lines += [f"- Waits for {other}: {why}" for other, why in rule.yields_to.items()]
    lines.append("- Sources: " + ", ".join(f"<{url}>" for url in rule.sources))
    if rule.related:
        lines.append("- Related: " + ", ".join(_link(other) for other in rule.related))
    return "\n".join([*lines, ""])


def _link(rule_id: str) -> str:
    """A link to another rule's section, by its heading's Markdown anchor."""
    words = f"{rule_id} {BY_ID[rule_id].title}".lower()
    anchor = "".join(letter for letter in words.replace(" ", "-") if letter.isalnum() or letter in "-_")
    return f"[{rule_id}](#{anchor})"


def _severity(rule: Rule) -> str:
    if rule.in_study and rule.in_study is not rule.severity:
        return f"{rule.severity}, {rule.in_study} on a VM under study"
    return rule.severity.value


def _concerns(rule: Rule) -> str:
    """Releases and editions; releases only for rules about ESXi."""
    releases = str(rule.applies) if rule.family in _ABOUT_ESXI else ""
    return ", ".join(filter(None, (releases, rule.editions))) or "always"


_ABOUT_ESXI = {"topology", "affinity", "memory", "api"}


def _evidence(rule: Rule) -> str:
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


def _needs(rule: Rule) -> str:
    return ", ".join(words for part, words in _PARTS.items() if part in rule.needs)


def _paragraph(heading: str, text: str, width: int) -> Iterator[str]:
    """A heading with indented text; empty without text."""
    for index, line in enumerate(wrap(text, width - _INDENT)):
        yield f"{heading if index == 0 else '':{_INDENT}}{line}"
