"""Texts that the outputs of a check share."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from vnuma.checks.finding import Severity
from vnuma.checks.result import CheckedVm, CheckResult, Outlook, Since
from vnuma.domain.vm.plain_text import counted

# Characters that XML 1.0 cannot hold, not even escaped.
_KINDS = {"vm": "VM"}
_NAMED = 3

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """The text without characters that XML does not allow: a VM may have any name."""
    return _NOT_XML.sub("?", text)


def unseen_words(result: CheckResult) -> list[tuple[str, str]]:
    """What could not be read, grouped: `10 VMs: a, b, c and 7 more`, and why."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for item in result.unseen:
        groups[item.kind, item.why].append(item.name)
    return [(_named(_KINDS.get(kind, kind), names), why) for (kind, why), names in groups.items()]


def _named(kind: str, names: list[str]) -> str:
    if len(names) == 1:
        return f"{kind} {names[0]}"
    return f"{counted(len(names), kind)}: {first_names(names)}"


def outlook_words(vm: CheckedVm) -> str:
    """`1x16 today: 1 vNUMA node of 16; planned 2x12: 4 nodes of 6 on esx01, 2 of 12 on esx02`, or empty."""
    if vm.planned is None:
        return ""
    after = f"planned {vm.planned.shape}: {_layouts(vm.planned)}"
    if vm.today is None:
        return after
    same = (vm.today.shape, {one.node_sizes for one in vm.today.layouts}) == (
        vm.planned.shape,
        {one.node_sizes for one in vm.planned.layouts},
    )
    return f"{after}, as today" if same else f"{vm.today.shape} today: {_layouts(vm.today)}; {after}"


def _layouts(outlook: Outlook) -> str:
    several = len(outlook.layouts) > 1
    parts = [
        f"{_nodes(one.node_sizes)}{f' on {first_names(one.hosts)}' if several else ''}"
        for one in outlook.layouts
    ]
    return ", ".join(parts) + ("" if outlook.sure else " (low confidence)")


def _nodes(sizes: tuple[int, ...]) -> str:
    alike = len(set(sizes)) == 1
    return f"{counted(len(sizes), 'vNUMA node')} of {sizes[0] if alike else '+'.join(map(str, sizes))}"


def first_names(names: Sequence[str], most: int = _NAMED) -> str:
    """`a, b, c and 7 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def headline(result: CheckResult) -> str:
    """The counts in two lines: VMs by their worst finding, and what was not evaluated."""
    count = result.by_severity
    parts = [f"{count.get(severity, 0):,} {severity.value}" for severity in Severity]
    parts.append(f"{count.get(None, 0):,} pass")
    return (
        f"{counted(len(result.vms), 'VM')}: {', '.join(parts)}\n"
        f"(each VM by its worst finding; {result.not_evaluated:,} of {counted(result.checks, 'check')} "
        "not evaluated)"
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
    return [
        f"{source}: {count} of {result.every_rule} rules evaluated{_with_host(result, source)}"
        for source, count in result.coverage.items()
    ]


def _with_host(result: CheckResult, source: str) -> str:
    added = result.host_adds.get(source)
    return f"; --host-nodes adds {added}, --cluster more" if added else ""


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
