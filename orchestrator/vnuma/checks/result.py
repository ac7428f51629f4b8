"""The result of a check of one or many VMs: findings, waivers, and what could not be read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from vnuma.checks.against_design import Difference, Drift
from vnuma.checks.fix_as import fix_in_tools
from vnuma.checks.rule import Finding, ObjectKind, Rule, Severity
from vnuma.checks.rules.catalogue import DECIDING
from vnuma.domain.vm.change import Author
from vnuma.domain.vm.estate import Declared, Unseen
from vnuma.words.plain_text import first_of
from vnuma.words.provenance import in_json

SCHEMA = "vnuma/check/1"
"""The schema name in a check's JSON document."""

Change = Literal["new", "unchanged"]

Key = tuple[str, ObjectKind, str]
"""Rule, kind and key of the object, which identify a finding across checks."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, its waiver's reason if any, and whether an earlier check had it."""

    finding: Finding
    waived: str = ""
    change: Change | None = None

    @property
    def key(self) -> Key:
        """Identifies it across checks."""
        return self.finding.rule, self.finding.kind, self.finding.key

    @property
    def severity(self) -> Severity:
        return self.finding.severity


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a VM's guest gets at a power-on, by host."""

    shape: str
    hosts: Mapping[tuple[int, ...], tuple[str, ...]]
    """The hosts of each layout of vNUMA nodes, by their sizes in vCPUs."""
    doubt: str
    """Why a prediction has low confidence; empty if all have a high one."""


@dataclass(frozen=True, slots=True)
class CheckedVm:
    """One VM: its facts, findings, and rules that could not be evaluated, with the reason.

    `guest` is the number of vNUMA nodes after a power-on, as text; empty: unknown.
    """

    name: str
    path: str
    key: str
    shape: str
    memory_mb: int | None
    host: str
    cluster: str
    release: str
    guest: str
    findings: tuple[Judged, ...]
    not_evaluated: Mapping[str, str]
    passed: int
    assumed: Mapping[str, str] = field(default_factory=dict)
    """Which defaults were assumed, by rule that was evaluated with them."""
    source: str = ""
    """Name of the source that it was read from."""
    declared: Declared | None = None
    """Where a design's code declares it."""
    planned: Outlook | None = None
    """For a design's VM: what its guest will see."""
    today: Outlook | None = None
    """For a design's VM that exists: what its guest sees now."""

    @property
    def undecided(self) -> tuple[str, ...]:
        """The rules on its topology that were not evaluated: without them it does not pass."""
        return tuple(sorted(DECIDING & self.not_evaluated.keys()))

    @property
    def worst(self) -> Severity | None:
        """The severity of the worst finding without a waiver."""
        return min(
            (item.severity for item in self.findings if not item.waived),
            key=lambda severity: severity.rank,
            default=None,
        )


@dataclass(frozen=True)
class Source:
    """A source of facts, when they were read (UTC), and how many there were."""

    name: str
    kind: str
    product: str
    read_at: str
    vms: int
    hosts: int
    clusters: int
    whole: bool = True
    """Whether everything was read, rather than some VMs by name."""
    full_at: str = ""
    """When every VM was last read in full, as `read_at`."""
    taken_over: int = 0
    """VMs with the configuration of an earlier reading, unchanged according to vCenter."""


@dataclass(frozen=True)
class Since:
    """How a check differs from an earlier one."""

    checked_at: str
    new: int
    unchanged: int
    fixed: tuple[tuple[str, str, str], ...]
    """Rule, kind and name of findings that are gone."""
    unknown: tuple[tuple[str, str, str], ...] = ()
    """The same for rules that could not be evaluated this time: neither fixed nor found."""


@dataclass(frozen=True)
class Group:
    """One finding on one object, and the VMs that it was seen from."""

    judged: Judged
    vms: tuple[tuple[str, str], ...]
    """Name and key."""


@dataclass(frozen=True)
class CheckResult:
    """A whole check, VMs worst first. `waivers` lists unused and invalid waivers."""

    checked_at: str
    sources: tuple[Source, ...]
    rules: Sequence[Rule]
    vms: tuple[CheckedVm, ...]
    unseen: tuple[Unseen, ...] = ()
    unread: tuple[str, ...] = ()
    """VMs of a design that could not be read: nothing of them was checked."""
    waivers: tuple[str, ...] = ()
    since: Since | None = None
    simulated: str | None = None
    left_out: int = 0
    """VMs that the filters excluded."""
    not_asked: frozenset[str] = frozenset()
    """Keys of VMs that the filters excluded, and names of their hosts and clusters."""
    drift: Drift | None = None
    """How the site differs from a design; None: not requested."""
    every_rule: int = field(default=0)
    """The number of all rules; `rules` are the requested ones."""
    host_adds: Mapping[str, int] = field(default_factory=dict)
    """For designs without a host: how many more rules a described one (--host-nodes) allows, by source."""

    @cached_property
    def declared(self) -> Mapping[str, Declared]:
        """Where code declares VMs, by the VM's key; empty for existing VMs."""
        return {vm.key: vm.declared for vm in self.vms if vm.declared}

    @cached_property
    def by_severity(self) -> Mapping[Severity, int]:
        """Number of VMs by their worst finding, for those with one."""
        return Counter(vm.worst for vm in self.vms if vm.worst)

    @cached_property
    def passing(self) -> int:
        """VMs without a finding whose topology was checked."""
        return sum(vm.worst is None and not vm.undecided for vm in self.vms)

    @cached_property
    def undecided(self) -> tuple[CheckedVm, ...]:
        """VMs, with or without findings, on whose topology a rule was not evaluated."""
        return tuple(vm for vm in self.vms if vm.undecided)

    @property
    def unknown(self) -> int:
        """VMs that neither pass nor have a finding, since too little was evaluated."""
        return sum(vm.worst is None for vm in self.undecided)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Findings by object, worst first: a host's finding appears once, not for each of its VMs."""
        seen: dict[tuple[object, ...], list[tuple[Judged, tuple[str, str]]]] = defaultdict(list)
        for vm in self.vms:
            for item in vm.findings:
                it = item.finding
                observed = tuple(sorted(it.observed.items())) if it.kind == "vm" else ()
                seen[*item.key, it.arm, observed].append((item, (vm.name, vm.key)))
        return tuple(sorted(map(_group, seen.values()), key=_order))

    @cached_property
    def severities(self) -> Mapping[str, Mapping[Severity, int]]:
        """Number of objects by severity for each rule; the worst first."""
        worst: dict[str, dict[Key, Severity]] = defaultdict(dict)
        for vm in self.vms:
            for item in vm.findings:
                if not item.waived:
                    of = worst[item.finding.rule]
                    of[item.key] = min(of.get(item.key, item.severity), item.severity, key=lambda s: s.rank)
        counted = {rule: Counter(objects.values()) for rule, objects in worst.items()}
        return {
            rule: {severity: count[severity] for severity in Severity if count[severity]}
            for rule, count in counted.items()
        }

    @cached_property
    def by_rule(self) -> tuple[tuple[Rule, Severity, int], ...]:
        """Each failed rule with its worst severity and number of objects, worst and most first."""
        found = [
            (rule, next(iter(counts)), sum(counts.values()))
            for rule in self.rules
            if (counts := self.severities.get(rule.id))
        ]
        return tuple(sorted(found, key=lambda entry: (entry[1].rank, -entry[2], entry[0].id)))

    @cached_property
    def reasons(self) -> tuple[tuple[str, tuple[str, ...], int], ...]:
        """Why rules were not evaluated: reason, rules, number of VMs; most VMs first, then most rules."""
        rules: dict[str, set[str]] = defaultdict(set)
        vms: Counter[str] = Counter()
        for vm in self.vms:
            for rule, reason in vm.not_evaluated.items():
                rules[reason].add(rule)
            vms.update(set(vm.not_evaluated.values()))
        found = [(reason, tuple(sorted(rules[reason])), count) for reason, count in vms.items()]
        return tuple(sorted(found, key=lambda entry: (-entry[2], -len(entry[1]), entry[0])))

    @cached_property
    def coverage(self) -> Mapping[str, int]:
        """The number of rules that could be evaluated on at least one VM, for each source with VMs."""
        never: dict[str, set[str]] = {}
        for vm in self.vms:
            never.setdefault(vm.source, set(vm.not_evaluated)).intersection_update(vm.not_evaluated)
        return {source: len(self.rules) - len(rules) for source, rules in never.items()}

    @cached_property
    def assumed_rules(self) -> Mapping[str, int]:
        """Of the rules in `coverage`, those that assumed defaults wherever they were evaluated."""
        known: dict[str, set[str]] = {}
        assumed: dict[str, set[str]] = defaultdict(set)
        every = {rule.id for rule in self.rules}
        for vm in self.vms:
            known.setdefault(vm.source, set()).update(every - vm.not_evaluated.keys() - vm.assumed.keys())
            assumed[vm.source].update(vm.assumed)
        return {source: len(assumed[source] - rules) for source, rules in known.items()}

    @property
    def assumed(self) -> int:
        """The number of checks that were evaluated with assumed defaults."""
        return sum(len(vm.assumed) for vm in self.vms)

    @property
    def checks(self) -> int:
        """Rules times VMs."""
        return sum(len(self.rules) for _ in self.vms)

    @property
    def not_evaluated(self) -> int:
        """The number of checks that could not be evaluated."""
        return sum(len(vm.not_evaluated) for vm in self.vms)

    def open(self, worst: Severity) -> Iterator[Group]:
        """Findings of at least that severity without a waiver."""
        return (
            group
            for group in self.groups
            if not group.judged.waived and group.judged.severity.rank <= worst.rank
        )

    @property
    def decided_percent(self) -> float:
        """The share of VMs on which every rule on the topology was evaluated; unread ones count."""
        every = len(self.vms) + len(self.unread)
        return 100 * (len(self.vms) - len(self.undecided)) / every if every else 0


def _group(seen: Sequence[tuple[Judged, tuple[str, str]]]) -> Group:
    """The worst finding on an object that was seen from several VMs, with the VMs that show it."""
    worst = min(_weight(item) for item, _ in seen)
    alike = [(item, vm) for item, vm in seen if _weight(item) == worst]
    values: dict[str, dict[str, None]] = defaultdict(dict)
    for item, _ in alike:
        for name, value in item.finding.observed.items():
            values[name][value] = None
    observed = {name: first_of(list(several), _VALUES, "; ") for name, several in values.items()}
    first = alike[0][0]
    judged = replace(first, finding=replace(first.finding, observed=observed))
    return Group(judged, tuple(dict.fromkeys(vm for _, vm in alike)))


def _weight(item: Judged) -> tuple[bool, int]:
    return bool(item.waived), item.severity.rank


_VALUES = 3
"""Different values of one object that are listed."""


def _order(group: Group) -> tuple[bool, int, bool, str, bool, str]:
    it, waived = group.judged.finding, bool(group.judged.waived)
    return waived, it.severity.rank, bool(it.superseded_by), it.rule, not_sql(it.name), it.name


def not_sql(name: str) -> bool:
    """Sorts VMs whose name says that they run SQL Server before all others."""
    return "sql" not in name.lower()


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
        {"vnuma_nodes": len(sizes), "node_sizes": list(sizes), "hosts": list(hosts)}
        for sizes, hosts in outlook.hosts.items()
    ]
    return {
        "shape": outlook.shape,
        "confidence": "low" if outlook.doubt else "high",
        "because": outlook.doubt,
        "layouts": layouts,
    }


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
