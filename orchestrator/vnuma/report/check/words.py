"""Texts that the outputs of a check share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from vnuma.checks.against_design import DRIFT, Difference, Drift
from vnuma.checks.result import CheckedVm, CheckResult, Outlook, Since
from vnuma.checks.rule import Rule, Severity
from vnuma.domain.topology.evidence import sizes_words
from vnuma.domain.vm.change import Author, value_words
from vnuma.domain.vm.estate import Declared
from vnuma.domain.vm.setting import AUTOMATIC, Value
from vnuma.words.plain_text import counted, first_of

_KINDS = {"vm": "VM"}
NAMED = 3


def unseen_words(result: CheckResult) -> list[tuple[str, str]]:
    """What could not be read, grouped: `10 VMs: a, b, c and 7 more`, and why."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for item in result.unseen:
        groups[item.kind, item.why].append(item.name)
    return [(_named(_KINDS.get(kind, kind), names), why) for (kind, why), names in groups.items()]


def _named(kind: str, names: list[str]) -> str:
    if len(names) == 1:
        return f"{kind} {names[0]}"
    return f"{counted(len(names), kind)}: {first_of(names, NAMED)}"


def outlook_words(vm: CheckedVm) -> str:
    """`1x16 today: 1 vNUMA node of 16; planned 2x12: 4 nodes of 6 on esx01, 2 of 12 on esx02`, or empty."""
    if vm.planned is None:
        return ""
    after = f"planned {vm.planned.shape}: {_layouts(vm.planned)}"
    if vm.today is None:
        return after
    today, planned = vm.today, vm.planned
    same = (today.shape, today.hosts.keys()) == (planned.shape, planned.hosts.keys())
    return f"{after}, as today" if same else f"{vm.today.shape} today: {_layouts(vm.today)}; {after}"


def _layouts(outlook: Outlook) -> str:
    several = len(outlook.hosts) > 1
    parts = [
        f"{sizes_words(sizes, 'vNUMA node')}{f' on {first_of(hosts, NAMED)}' if several else ''}"
        for sizes, hosts in outlook.hosts.items()
    ]
    return ", ".join(parts) + (f" (low confidence: {outlook.doubt})" if outlook.doubt else "")


def headline(result: CheckResult) -> str:
    """The counts in two lines: what was evaluated, and VMs by their worst finding."""
    counts = f"{counted(len(result.vms), 'VM')} by worst finding: {', '.join(_by_worst(result))}"
    return f"{evaluated_words(result)}\n{counts}"


def evaluated_words(result: CheckResult) -> str:
    """`1,450 of 1,752 checks evaluated, 220 of them with assumed defaults`."""
    words = f"{result.checks - result.not_evaluated:,} of {counted(result.checks, 'check')} evaluated"
    return f"{words}, {result.assumed:,} of them with assumed defaults" if result.assumed else words


def _by_worst(result: CheckResult) -> Iterator[str]:
    count = result.by_severity
    yield from (f"{count.get(severity, 0):,} {severity.value}" for severity in Severity)
    yield f"{result.passing:,} pass"
    if result.unknown:
        yield f"{result.unknown:,} unknown (too little evaluated)"


def undecided_words(result: CheckResult) -> str:
    """Which rules on the topology were not evaluated, and on which VMs; empty if all were."""
    if not result.undecided:
        return ""
    rules = sorted({rule for vm in result.undecided for rule in vm.undecided})
    names = first_of([vm.name for vm in result.undecided], NAMED)
    number = f"{len(result.undecided):,} of {counted(len(result.vms), 'VM')}"
    why = Counter(
        reason
        for vm in result.undecided
        for reason in dict.fromkeys(vm.not_evaluated[rule] for rule in vm.undecided)
    )
    most_first = [f"{reason} ({count:,})" for reason, count in why.most_common()]
    return (
        f"topology not checked (some of {', '.join(rules)} not evaluated) on {number}: {names}. "
        f"Reasons: {first_of(most_first, NAMED)}"
    )


def taken_over_words(result: CheckResult) -> list[str]:
    """For each source with an earlier reading: how many VMs were read, and how many were unchanged."""
    return [
        f"{source.name}: read {source.vms - source.taken_over:,} of {counted(source.vms, 'VM')} in full, "
        f"{source.taken_over:,} had not changed; every VM was last read {_minute(source.full_at)}"
        for source in result.sources
        if source.taken_over
    ]


def coverage_words(result: CheckResult) -> list[str]:
    """For each source, how many rules could be evaluated on at least one VM, or could with a host."""
    found = []
    for source, count in result.coverage.items():
        assumed, added = result.assumed_rules.get(source), result.host_adds.get(source)
        words = f"{source}: {count} of {result.every_rule} rules evaluated"
        words += f", {assumed} with assumed defaults" if assumed else ""
        found.append(words + (f"; --host-nodes adds {added}, --cluster more" if added else ""))
    return found


def mixed_words(result: CheckResult, rule: str) -> str:
    """`42 warn, 6,619 info` for a rule whose severity varies by object; else empty."""
    counts = result.severities.get(rule, {})
    return ", ".join(f"{count:,} {severity}" for severity, count in counts.items()) if len(counts) > 1 else ""


def since_words(since: Since) -> str:
    """How much changed since the earlier check."""
    counts = f"{since.new} new, {len(since.fixed)} gone, {since.unchanged} unchanged"
    return f"since {_minute(since.checked_at)}: {counts}" + (
        f", {len(since.unknown)} not evaluated now" if since.unknown else ""
    )


def _minute(at: str) -> str:
    """`2026-11-25 14:43 UTC`."""
    return f"{at[:16].replace('T', ' ')} UTC"


_NAMED_IN_DRIFT = 5

DRIFT_RULE = Rule(
    DRIFT,
    Severity.WARN,
    "The VM is not as designed",
    condition="a setting differs from the design",
    consequence="Somebody changed the VM, or the design was never applied.",
    fix="Restore the designed settings, or change the design.",
    sources=(),
    reads="vm",
)
"""Drift as a rule, for formats that list findings."""
_MISSING = "The VM is only in the design"


@dataclass(frozen=True)
class DriftRow:
    """One VM that is not as designed; `key` and `path` are the name of one that is only in the design."""

    name: str
    key: str
    path: str
    title: str
    observed: str
    design: str
    declared: Declared | None = None


def drift_rows(drift: Drift | None) -> Iterator[DriftRow]:
    """The VMs that `--fail-on drift` counts."""
    if drift is None:
        return
    for vm in drift.vms:
        words = "; ".join(f"{difference_words(one)}; {author_words(one)}" for one in vm.differences)
        it = vm.facts
        yield DriftRow(it.name, it.key, it.path, DRIFT_RULE.title, words, vm.design, vm.declared)
    for one in drift.only_design:
        yield DriftRow(one.name, one.name, one.name, _MISSING, "", one.where)


def drift_headline(drift: Drift) -> str:
    """`drift from plan.json: 2 of 14 VMs differ in 3 settings; 1 VM only in the design`."""
    differ = "differs" if len(drift.vms) == 1 else "differ"
    number = f"{len(drift.vms):,} of {counted(drift.compared, 'VM')}"
    head = f"drift from {', '.join(drift.designs)}: {number} {differ}"
    parts = [f"{head} in {counted(drift.settings, 'setting')}" if drift.vms else head]
    parts += [
        f"{counted(len(some), 'VM')} {where}"
        for some, where in (
            (drift.only_design, "only in the design"),
            (drift.only_site, "not in the design"),
            (drift.unmatched, "not compared"),
        )
        if some
    ]
    return "; ".join(parts)


def difference_words(one: Difference) -> str:
    """`numCoresPerSocket is 16, designed 8`."""
    return f"{one.setting} is {_value(one.setting, one.now)}, designed {_value(one.setting, one.design)}"


def author_words(one: Difference) -> str:
    """Who changed it and when, or why that is unknown."""
    if isinstance(one.author, Author):
        was = f", it was {one.author.before}" if one.author.before else ""
        return f"changed by {one.author.user} at {one.author.at[:19].replace('T', ' ')} UTC{was}"
    return f"changed by: not known ({one.author})"


def one_sided_words(drift: Drift) -> Iterator[str]:
    """VMs that only one of the two has, and those not compared, by name as far as they fit."""
    if drift.only_design:
        yield f"only in the design: {first_of([one.name for one in drift.only_design], _NAMED_IN_DRIFT)}"
    if drift.only_site:
        yield f"not in the design: {first_of([one.name for one in drift.only_site], _NAMED_IN_DRIFT)}"
    for one in drift.unmatched[:_NAMED_IN_DRIFT]:
        yield f"not compared: {one.name}: {one.why}"


def silent_words(drift: Drift) -> Iterator[str]:
    """Settings that were not compared, by reason: `2 settings on 14 VMs (cpuAffinity, ...): why`."""
    by_reason: dict[str, dict[str, int]] = defaultdict(dict)
    for (setting, why), vms in drift.not_compared.items():
        by_reason[why][setting] = vms
    for why, found in sorted(by_reason.items()):
        names = ", ".join(sorted(found)[:_NAMED_IN_DRIFT]) + (", ..." if len(found) > _NAMED_IN_DRIFT else "")
        yield f"{counted(len(found), 'setting')} on {counted(max(found.values()), 'VM')} ({names}): {why}"


def _value(setting: str, value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "automatic" if setting in AUTOMATIC and value == 0 else value_words(value)
