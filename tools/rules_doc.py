"""Write docs/reference/rules.md from the design rules.

python -m tools.rules_doc
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from vnuma.checks.rule import FAMILIES, Rule, Severity
from vnuma.checks.rules import catalogue
from vnuma.checks.rules.catalogue import BY_ID, RULES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "rules.md"


def page() -> str:
    """Every rule."""
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
is written from the rules by `python -m tools.rules_doc`.

Severity: **block** spoils or breaks what is planned, **warn** may, **info** is worth knowing. On a
VM under study some rules weigh otherwise. *Unconfirmed* rules rest on general knowledge and warn
at most.
"""


def _section(rule: Rule) -> str:
    lines = [
        f"### {rule.id} {rule.title}",
        "",
        f"**{catalogue.severity(rule)}** · {catalogue.concerns(rule)}",
        "",
        f"- Found when: {rule.condition}.",
        f"- Why: {rule.consequence}",
        f"- Fix: {rule.fix}",
        f"- Reads: {catalogue.needs(rule)}.",
    ]
    if rule.unconfirmed:
        lines.append(f"- Evidence: {catalogue.evidence(rule)}")
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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
