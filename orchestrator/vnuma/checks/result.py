"""What a check of one or many VMs found: each finding with what became of it, and what was not seen."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from vnuma.checks.against_design import Drift
from vnuma.checks.finding import Finding, Kind, Severity
from vnuma.checks.rule import Rule
from vnuma.domain.vm.estate import Declared, Unseen

SCHEMA = "vnuma/check/1"
"""What a check's JSON document says that it is."""

Change = Literal["new", "unchanged"]

Key = tuple[str, Kind, str]
"""Rule, kind and key of the object: what makes a finding the same in two checks."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, the reason that somebody waived it, and whether an earlier check had it."""

    finding: Finding
    waived: str = ""
    change: Change | None = None

    @property
    def key(self) -> Key:
        """What makes it the same finding in another check."""
        return self.finding.rule, self.finding.kind, self.finding.key

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.finding.severity


@dataclass(frozen=True, slots=True)
class Layout:
    """The vNUMA nodes that these hosts give, by their sizes in vCPUs."""

    node_sizes: tuple[int, ...]
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a VM's guest gets at a power-on, by the host that it happens on."""

    shape: str
    layouts: tuple[Layout, ...]
    sure: bool
    """Whether every prediction has high confidence."""


@dataclass(frozen=True, slots=True)
class CheckedVm:
    """One VM: what it is, what was found, and which rules could not be evaluated, with the reason.

    `guest` is the number of vNUMA nodes that a power-on would give, in words; empty: not known.
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
    source: str = ""
    """Name of the source that it was read from."""
    declared: Declared | None = None
    """Where a design's code declares it."""
    planned: Outlook | None = None
    """Of a design's VM: what its guest will see."""
    today: Outlook | None = None
    """Of a design's VM that exists: what its guest sees now."""

    @property
    def worst(self) -> Severity | None:
        """The worst finding that nobody waived."""
        return min(
            (item.severity for item in self.findings if not item.waived),
            key=lambda severity: severity.rank,
            default=None,
        )


@dataclass(frozen=True)
class Source:
    """Where facts came from, when they were read (UTC), and how much there was."""

    name: str
    kind: str
    product: str
    read_at: str
    vms: int
    hosts: int
    clusters: int
    whole: bool = True
    """Whether everything there was read, not some VMs by name."""
    full_at: str = ""
    """When every VM was last read in full, as `read_at`."""
    taken_over: int = 0
    """VMs whose configuration is that of an earlier reading: vCenter says that it has not changed."""


@dataclass(frozen=True)
class Since:
    """How a check differs from an earlier one."""

    checked_at: str
    new: int
    unchanged: int
    fixed: tuple[tuple[str, str, str], ...]
    """Rule, kind and name of what is no longer found."""
    unknown: tuple[tuple[str, str, str], ...] = ()
    """The same for what could not be evaluated this time: neither fixed nor found."""


@dataclass(frozen=True)
class Group:
    """One finding on one object, and the VMs that it was seen from."""

    judged: Judged
    vms: tuple[tuple[str, str], ...]
    """Name and key."""


@dataclass(frozen=True)
class CheckResult:
    """A whole check, VMs worst first. `waivers` says what of the waivers file did not apply."""

    checked_at: str
    sources: tuple[Source, ...]
    rules: Sequence[Rule]
    vms: tuple[CheckedVm, ...]
    unseen: tuple[Unseen, ...] = ()
    waivers: tuple[str, ...] = ()
    since: Since | None = None
    simulated: str | None = None
    left_out: int = 0
    """VMs that the filters left out."""
    not_asked: frozenset[str] = frozenset()
    """Keys of VMs that the filters left out, and names of the hosts and clusters that these run on."""
    drift: Drift | None = None
    """How the site differs from a design; None: not asked."""
    every_rule: int = field(default=0)
    """How many rules there are; `rules` are those that were asked."""
    host_adds: Mapping[str, int] = field(default_factory=dict)
    """By source, for designs without a host: how many more rules a described one (--host-nodes) allows."""

    @cached_property
    def declared(self) -> Mapping[str, Declared]:
        """Where code declares VMs, by the VM's key; of VMs that exist, nothing."""
        return {vm.key: vm.declared for vm in self.vms if vm.declared}

    @cached_property
    def by_severity(self) -> Mapping[Severity | None, int]:
        """Number of VMs by their worst finding; None: nothing found."""
        return Counter(vm.worst for vm in self.vms)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Findings by object, worst first: one host's fault is one finding, not one for each VM on it."""
        seen: dict[tuple[object, ...], list[tuple[str, str]]] = defaultdict(list)
        first: dict[tuple[object, ...], Judged] = {}
        for vm in self.vms:
            for item in vm.findings:
                observed = tuple(sorted(item.finding.observed.items()))
                same = (*item.key, item.finding.arm, observed)
                first.setdefault(same, item)
                seen[same].append((vm.name, vm.key))
        groups = [Group(item, tuple(dict.fromkeys(seen[same]))) for same, item in first.items()]
        return tuple(sorted(groups, key=_order))

    @cached_property
    def severities(self) -> Mapping[str, Mapping[Severity, int]]:
        """Objects by the severity that a rule has on each, by rule; the worst first."""
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
        """Each rule that failed, its worst severity and on how many objects, worst and most first."""
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
        """How many rules could be evaluated on at least one VM of each source that has VMs."""
        never: dict[str, set[str]] = {}
        for vm in self.vms:
            never.setdefault(vm.source, set(vm.not_evaluated)).intersection_update(vm.not_evaluated)
        return {source: len(self.rules) - len(rules) for source, rules in never.items()}

    @property
    def checks(self) -> int:
        """Rules times VMs."""
        return sum(len(self.rules) for _ in self.vms)

    @property
    def not_evaluated(self) -> int:
        """How many of the checks could not be evaluated."""
        return sum(len(vm.not_evaluated) for vm in self.vms)

    def open(self, worst: Severity) -> Iterator[Group]:
        """Findings at least that bad that nobody waived."""
        return (
            group
            for group in self.groups
            if not group.judged.waived and group.judged.severity.rank <= worst.rank
        )


def _order(group: Group) -> tuple[bool, int, bool, str, str]:
    finding = group.judged.finding
    superseded = bool(finding.superseded_by)
    return bool(group.judged.waived), finding.severity.rank, superseded, finding.rule, finding.name
