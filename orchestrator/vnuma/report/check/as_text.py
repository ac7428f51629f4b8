"""A check on the terminal: counts, the findings worst first, and what could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from textwrap import wrap

from vnuma.checks.against_design import Drift
from vnuma.checks.result import CheckResult, Group
from vnuma.checks.rule import Severity
from vnuma.report.check import words as texts
from vnuma.words.plain_text import counted

WIDTH = 78
"""Two columns less than a usual terminal's, for the shape before each finding."""
MOST = 40
"""Most findings in full; with more, each rule shows its first few and their number."""

_EXAMPLES = 2

_NAMED = 3
_INDENT = " " * 11


def heads(result: CheckResult, width: int = WIDTH) -> list[str]:
    """The counts, shown first."""
    return [line for words in texts.headline(result).splitlines() for line in wrap(words, width)]


def lines(result: CheckResult, width: int = WIDTH) -> Iterator[tuple[str, str]]:
    """Lines, each with the severity that colours its first word; empty for none."""
    for line in heads(result, width):
        yield line, ""
    undecided = filter(None, [texts.undecided_words(result)])
    for words in (*texts.coverage_words(result)[:_LISTED], *undecided, *texts.taken_over_words(result)):
        yield from _wrapped("", words, width)
    if result.since:
        yield from _wrapped("", texts.since_words(result.since), width)
    if result.drift:
        yield from _drift(result.drift, width)
    shown = [group for group in result.groups if group.judged.severity is not Severity.INFO]
    some = shown if len(shown) <= MOST else list(_examples(shown))
    for group in some:
        yield from _finding(group, width)
    yield from _rest(result, len(shown) - len(some), width)
    planned = [(vm.name, words) for vm in result.vms if (words := texts.outlook_words(vm))]
    for name, words in planned[:_LISTED]:
        yield from _wrapped("guest  ", f"{name}: {words}", width)
    if len(planned) > _LISTED:
        yield from _wrapped("guest  ", f"{len(planned) - _LISTED} more VMs (--format json has all)", width)
    for rule, kind, name in result.since.fixed[:MOST] if result.since else ():
        yield from _wrapped("gone   ", f"{rule:4} {kind} {name}", width)
    yield from _unseen(result, width)
    for words in result.waivers:
        yield from _wrapped("note   ", words, width)


def _drift(drift: Drift, width: int) -> Iterator[tuple[str, str]]:
    """Shown before the findings, since a person's recent change is more urgent than an old finding."""
    yield from _wrapped("", texts.drift_headline(drift), width)
    for vm in drift.vms[:MOST]:
        yield from _wrapped("drift      ", vm.facts.name, width)
        for one in vm.differences:
            yield from _wrapped(_INDENT, f"{texts.difference_words(one)}; {texts.author_words(one)}", width)
    if len(drift.vms) > MOST:
        yield from _wrapped(
            "drift      ", f"{len(drift.vms) - MOST:,} more VMs (--format json has all)", width
        )
    for words in texts.one_sided_words(drift):
        yield from _wrapped("drift      ", words, width)
    for words in texts.silent_words(drift):
        yield from _wrapped("not compared ", words, width)


def _finding(group: Group, width: int) -> Iterator[tuple[str, str]]:
    it, waived = group.judged.finding, group.judged.waived
    word = "waived" if waived else it.severity.value
    new = " [new]" if group.judged.change == "new" else ""
    severity = "" if waived else it.severity.value
    yield from _coloured(f"{word:7}{it.rule:4}", f"{it.name}{new}  {it.title}", severity, width)
    where = [name for name, _ in group.vms] if it.kind != "vm" else []
    if where:
        more = f" and {len(where) - _NAMED} more" if len(where) > _NAMED else ""
        yield from _wrapped(_INDENT, f"{counted(len(where), 'VM')}: {', '.join(where[:_NAMED])}{more}", width)
    observed = ", ".join(f"{name} {value}" for name, value in it.observed.items())
    if it.arm:
        observed = f"arm {it.arm}: {observed}"
    yield from _wrapped(_INDENT, observed, width)
    if waived:
        yield from _wrapped(_INDENT, f"accepted: {waived}", width)
        return
    for words in filter(None, (it.assumed, it.matters)):
        yield from _wrapped(_INDENT, words, width)
    if not it.superseded_by:
        yield from _wrapped(_INDENT, f"fix: {it.fix.text}", width)


def _examples(shown: list[Group]) -> Iterator[Group]:
    """The first few findings of each rule."""
    seen: Counter[str] = Counter()
    for group in shown:
        rule = group.judged.finding.rule
        seen[rule] += 1
        if seen[rule] <= _EXAMPLES:
            yield group


def _rest(result: CheckResult, left: int, width: int) -> Iterator[tuple[str, str]]:
    """Counts by rule of what is not listed: information, and what exceeds a screen."""
    if left:
        yield from _wrapped(
            "", f"and {left:,} more (--format html, csv or json has all); objects by rule:", width
        )
    for rule, severity, objects in result.by_rule:
        if left or severity is Severity.INFO:
            yield from _coloured(f"{severity.value:7}{rule.id:4}{objects:>7,}  ", rule.title, severity, width)


def _unseen(result: CheckResult, width: int) -> Iterator[tuple[str, str]]:
    for names, why in texts.unseen_words(result):
        yield from _wrapped("unseen     ", f"{names}: {why}", width)
    for reason, rules, vms in result.reasons[:_LISTED]:
        yield from _wrapped(
            "not evaluated ", f"{counted(len(rules), 'rule')} on {counted(vms, 'VM')}: {reason}", width
        )
    more = len(result.reasons) - _LISTED
    if more > 0:
        yield from _wrapped(
            "not evaluated ", f"{counted(more, 'more reason')} (--format json has all)", width
        )


_LISTED = 12


def _coloured(head: str, text: str, severity: str, width: int) -> Iterator[tuple[str, str]]:
    for number, (line, _) in enumerate(_wrapped(head, text, width)):
        yield line, severity if number == 0 else ""


def _wrapped(head: str, text: str, width: int) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(wrap(text, width - len(head), break_on_hyphens=False)):
        yield (head if number == 0 else " " * len(head)) + line, ""
