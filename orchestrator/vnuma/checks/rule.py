"""A rule: its text, where it applies, the pure function that decides, and its finding on an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Literal

from vnuma.checks.facts import Facts
from vnuma.domain.vm.change import Change, change_of_unknown, change_to
from vnuma.domain.vm.setting import Settings, Value

ObjectKind = Literal["vm", "host", "cluster", "study", "vcenter"]


class Severity(StrEnum):
    """The severity of a failed rule."""

    BLOCK = "block"
    WARN = "warn"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 is worst."""
        return _ORDER[self]


_ORDER = {Severity.BLOCK: 0, Severity.WARN: 1, Severity.INFO: 2}


# What an arm would otherwise set by itself.
_KEEP = {"follow_cores_per_socket": "keep", "numa_autosize": "keep"}


@dataclass(frozen=True)
class Fix:
    """What to do, as text and as settings for tools.

    `arm` has the fields of a study's arm that the fix changes. `settings` has vSphere's own names
    (`domain.vm.setting`), None: remove the key. `commands` is T-SQL, esxcli or bcdedit, ready to paste.
    """

    text: str
    arm: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, Value] = field(default_factory=dict)
    commands: str = ""
    topology: str = ""
    """The VM's own shape, for a fix that keeps it, since an arm states a whole one. Empty: unknown."""
    current: Settings | None = field(default_factory=dict, repr=False)
    """The VM's settings as read, which the fix changes. Empty for an arm of a study; None: any VM."""

    @cached_property
    def change(self) -> Change:
        """The settings that the fix changes, before and after; empty if it changes no VM."""
        if self.current is None:
            return change_of_unknown(self.settings)
        return change_to(self.current, self.settings) if self.current else Change()

    @cached_property
    def ansible(self) -> dict[str, object]:
        """Variables of the role vm_topology that make exactly this change; empty if an arm cannot
        express it.
        """
        shape = self.arm.get("topology") or self.topology
        if not self.arm or not shape:
            return {}
        kept = {} if "vnuma_nodes" in self.arm else _KEEP
        return {"vm_topology_arm": {"topology": shape, **kept, **self.arm}}


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that failed on one object.

    `kind`, `name` and `key` name the object that the fix changes; `vm` and `vm_key` the VM it was seen from.
    `superseded_by` is the rule to fix first, and `matters` says why.
    """

    rule: str
    severity: Severity
    title: str
    kind: ObjectKind
    name: str
    key: str
    vm: str
    vm_key: str
    arm: str
    """The study's arm with the finding; empty outside a study."""
    observed: Mapping[str, str]
    consequence: str
    fix: Fix
    source: str
    superseded_by: str = ""
    matters: str = ""
    unconfirmed: bool = False
    assumed: str = ""
    """Which defaults it assumes, since the source does not show those settings; empty: none."""


Release = tuple[int, int]

ANY_RELEASE: Release = (0, 0)
NEWEST: Release = (99, 0)


@dataclass(frozen=True)
class Applies:
    """Where a rule applies; bounds are inclusive. Elsewhere it passes."""

    since: Release = ANY_RELEASE
    until: Release = NEWEST
    hardware_since: int = 0
    hardware_until: int = 999

    @property
    def needs_release(self) -> bool:
        """Whether that depends on the host's release."""
        return self.since > ANY_RELEASE or self.until < NEWEST

    @property
    def needs_hardware(self) -> bool:
        """Whether that depends on the virtual hardware version."""
        return self.hardware_since > 0 or self.hardware_until < 999

    def __str__(self) -> str:
        parts = []
        if self.needs_release:
            low, high = (f"{major}.{minor}" for major, minor in (self.since, self.until))
            parts.append("ESXi " + _range(low, high, self.since == ANY_RELEASE, self.until == NEWEST))
        if self.needs_hardware:
            low, high = str(self.hardware_since), str(self.hardware_until)
            parts.append("hardware version " + _range(low, high, low == "0", high == "999"))
        return ", ".join(parts) or "every release"


def _range(low: str, high: str, open_low: bool, open_high: bool) -> str:
    if open_low:
        return f"up to {high}"
    return f"{low} and later" if open_high else f"{low} to {high}"


@dataclass(frozen=True)
class Fail:
    """A rule's failure: what was seen, and the fix for this object if known."""

    observed: Mapping[str, str]
    fix: Fix | None = None
    severity: Severity | None = None
    """If it differs from the rule's own."""
    title: str = ""
    """If it differs from the rule's own."""
    object: tuple[ObjectKind, str, str] | None = None
    """Kind, name and key of the object to change, if not the VM."""
    matters: str = ""
    """A sentence about its relation to other rules, if already known."""


Check = Callable[[Facts], Fail | None]


def _no_check(facts: Facts) -> Fail | None:
    raise NotImplementedError


@dataclass(frozen=True)
class Rule:
    """One design rule, as the decorator of its check: a function that returns None for a pass."""

    id: str
    severity: Severity
    title: str
    _: KW_ONLY
    condition: str
    consequence: str
    fix: str
    sources: tuple[str, ...]
    reads: str
    """Required parts of the subject, separated by spaces: "vm", "host", "sql" and so on."""
    applies: Applies = Applies()
    in_study: Severity | None = None
    """The severity for a VM under study, if different."""
    editions: str = ""
    """SQL Server or Windows editions that it is about, as text; empty: all."""
    unconfirmed: bool = False
    """General knowledge without a source: warns at most."""
    yields_to: Mapping[str, str] = field(default_factory=dict)
    """Rules that hide this one while they fail, each with the reason."""
    related: tuple[str, ...] = ()
    check: Check = _no_check

    def __call__(self, check: Check) -> Rule:
        """The complete rule."""
        return replace(self, check=check)

    @property
    def is_complete(self) -> bool:
        """Whether it has decorated its check."""
        return self.check is not _no_check

    @property
    def family(self) -> str:
        """What it is about."""
        return FAMILIES[self.id[0]]

    @property
    def needs(self) -> frozenset[str]:
        """The parts that it reads."""
        return frozenset(self.reads.split())

    def severity_for(self, *, studied: bool) -> Severity:
        """The severity of a failure, for a VM under study or not."""
        return self.in_study if studied and self.in_study else self.severity


rule = Rule

FAMILIES = {
    "T": "topology",
    "A": "affinity",
    "M": "memory",
    "R": "api",
    "W": "windows",
    "S": "sqlserver",
    "Q": "measurement",
}
"""Family by first letter of a rule's id."""
