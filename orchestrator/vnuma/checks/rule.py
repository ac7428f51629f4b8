"""A rule: its text, where it applies, and the small pure function that decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace

from vnuma.checks.facts import Facts
from vnuma.checks.finding import Fix, ObjectKind, Severity

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
            parts.append("ESXi " + _range(_dotted(self.since), _dotted(self.until), *self._open))
        if self.needs_hardware:
            ends = (self.hardware_since == 0, self.hardware_until == 999)
            parts.append(
                "hardware version " + _range(str(self.hardware_since), str(self.hardware_until), *ends)
            )
        return ", ".join(parts) or "every release"

    @property
    def _open(self) -> tuple[bool, bool]:
        return self.since == ANY_RELEASE, self.until == NEWEST


def _dotted(release: Release) -> str:
    return f"{release[0]}.{release[1]}"


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
