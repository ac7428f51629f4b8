"""A check as Markdown for a pull request's comment: findings, places, and what the guest will see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from vnuma.checks.against_design import Drift
from vnuma.checks.result import CheckResult, Group
from vnuma.checks.rule import Severity
from vnuma.domain.vm.estate import Declared
from vnuma.report.check import words as texts
from vnuma.words.plain_text import counted, escaped

_MOST = 50
"""Most rows of a table: a comment on GitHub is limited to 65,536 characters."""
_LONGEST = 200
_SIGNS = re.compile(r"([\\`*_{}\[\]<>|~&])")
_REFERENCES = re.compile(r"([@#!])(?=\w)")
"""What a forge would turn into a mention or a link to an issue."""
_MARKS = {Severity.BLOCK: "⛔ block", Severity.WARN: "⚠️ warn", Severity.INFO: "ℹ️ info"}  # noqa: RUF001


def as_markdown(result: CheckResult) -> str:
    """The text. Names and values are plain text in it, whatever they contain."""
    evaluated, counts = texts.headline(result).splitlines()
    undecided = texts.undecided_words(result)
    covered = "; ".join(_plain(words) for words in texts.coverage_words(result)[:_MOST])
    parts = [f"### vnuma: {evaluated}", counts, *filter(None, [_plain(undecided), covered])]
    if result.simulated:
        parts.insert(1, f"**SIMULATED**: {_plain(result.simulated)}")
    if result.since:
        parts.append(texts.since_words(result.since))
    if result.drift:
        parts += _section(f"**{_plain(texts.drift_headline(result.drift))}**", _drift(result.drift))
    parts += _section("", _findings(result))
    parts += _section("**What the guest sees**", _outlooks(result))
    parts += _folded("Not evaluated", _not_evaluated(result))
    parts += _folded("Accepted", _accepted(result))
    parts += _section("", [f"- {_plain(words)}" for words in result.waivers])
    return "\n\n".join(parts) + "\n"


def _drift(drift: Drift) -> list[str]:
    rows = [
        _row(
            _where(vm.facts.name, vm.declared),
            _plain(texts.difference_words(one)),
            _plain(texts.author_words(one)),
        )
        for vm in drift.vms
        for one in vm.differences
    ]
    table = _table(["| VM | setting | changed by |", "|--|--|--|"], rows, "json")
    notes = [*texts.one_sided_words(drift), *texts.silent_words(drift)]
    return [*table, *([""] if table and notes else []), *(f"- {_plain(words)}" for words in notes)]


def _findings(result: CheckResult) -> list[str]:
    found = [group for group in result.groups if not group.judged.waived]
    head = ["| | rule | object | finding | fix |", "|--|--|--|--|--|"]
    return _table(head, [_finding(group, result) for group in found], "html") or ["Nothing found."]


def _table(head: Sequence[str], rows: Sequence[str], complete: str) -> list[str]:
    """The first rows under their head; the format `complete` has them all. Empty without rows."""
    left = len(rows) - _MOST
    more = [f"\n{left} more: `vnuma check --format {complete}` shows all."] if left > 0 else []
    return [*head, *rows[:_MOST], *more] if rows else []


def _finding(group: Group, result: CheckResult) -> str:
    it = group.judged.finding
    observed = ", ".join(f"{name} {value}" for name, value in it.observed.items())
    fix = " ".join(filter(None, (it.matters, "" if it.superseded_by else it.fix.text)))
    assumed = f" ({it.assumed})" if it.assumed else ""
    new = " (new)" if group.judged.change == "new" else ""
    return _row(
        _MARKS[it.severity] + new,
        it.rule,
        _where(it.name, result.declared.get(it.key)),
        f"{_plain(it.title)}: {_plain(observed + assumed)}",
        _plain(fix),
    )


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _where(name: str, at: Declared | None) -> str:
    return _plain(name) + (f"<br>{_plain(at.file)}:{at.line}" if at else "")


def _outlooks(result: CheckResult) -> list[str]:
    found = [
        f"- {_plain(vm.name)}: {_plain(words)}" for vm in result.vms if (words := texts.outlook_words(vm))
    ]
    left = len(found) - _MOST
    return [*found[:_MOST], *([f"- {left} more VMs"] if left > 0 else [])]


def _not_evaluated(result: CheckResult) -> list[str]:
    unseen = [f"- {_plain(names)}: {_plain(why)}" for names, why in texts.unseen_words(result)[:_MOST]]
    return unseen + [
        f"- {', '.join(rules)} on {counted(vms, 'VM')}: {_plain(reason)}"
        for reason, rules, vms in result.reasons[:_MOST]
    ]


def _accepted(result: CheckResult) -> list[str]:
    waived = [group.judged for group in result.groups if group.judged.waived]
    return [
        f"- {item.finding.rule} {_plain(item.finding.name)}: {_plain(item.waived)}" for item in waived[:_MOST]
    ]


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield "\n".join([*([title, ""] if title else []), *lines])


def _folded(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        head = ["<details><summary>", "", f"{title} ({len(lines)})", "", "</summary>", ""]
        yield "\n".join([*head, *lines, "", "</details>"])


def _plain(text: str) -> str:
    """Escaped, without links, mentions, HTML, cells or line breaks; truncated if long."""
    line = " ".join(escaped(text).split())
    cut = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
    return _REFERENCES.sub("\\1\u200b", _SIGNS.sub(r"\\\1", cut))
