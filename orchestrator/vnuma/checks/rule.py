"""A rule: what it says, whom it concerns, and the small pure function that decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vnuma.checks.facts import Facts
from vnuma.checks.finding import Fix, Kind, Severity

Release = tuple[int, int]

ANY_RELEASE: Release = (0, 0)
NEWEST: Release = (99, 0)


@dataclass(frozen=True)
class Applies:
    """Whom a rule concerns; bounds are inclusive. A rule passes wherever it does not apply."""

    since: Release = ANY_RELEASE
    until: Release = NEWEST
    hardware_since: int = 0
    hardware_until: int = 999

    @property
    def needs_release(self) -> bool:
        """Whether the host's release has to be known to tell."""
        return self.since > ANY_RELEASE or self.until < NEWEST

    @property
    def needs_hardware(self) -> bool:
        """Whether the virtual hardware version has to be known to tell."""
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
    """The rule's condition holds: what was seen, and the fix for this object where it is known."""

    observed: Mapping[str, str]
    fix: Fix | None = None
    severity: Severity | None = None
    """Where it differs from the rule's own."""
    object: tuple[Kind, str, str] | None = None
    """Kind, name and key of what has to be changed, where that is not the VM."""
    matters: str = ""
    """A sentence that says how it stands to other rules, where it is known at once."""


Check = Callable[[Facts], Fail | None]


@dataclass(frozen=True)
class Rule:
    """One design rule. `check` returns None where the condition does not hold."""

    id: str
    family: str
    severity: Severity
    title: str
    condition: str
    consequence: str
    fix: str
    sources: tuple[str, ...]
    check: Check
    needs: frozenset[str]
    """Parts of the subject that must be there: "vm", "host", "sql" and so on."""
    applies: Applies = Applies()
    in_study: Severity | None = None
    """The severity on a VM under study, where it differs."""
    editions: str = ""
    """SQL Server or Windows editions it concerns, in words; empty: all."""
    unconfirmed: bool = False
    """General knowledge without a source that states it: at most a warning."""
    yields_to: Mapping[str, str] = field(default_factory=dict)
    """Rules that hide this one while they fail, each with the reason."""
    related: tuple[str, ...] = ()

    def severity_for(self, *, studied: bool) -> Severity:
        """How bad a failure is, on a VM under study or not."""
        return self.in_study if studied and self.in_study else self.severity


def rule(
    id_: str,
    severity: Severity,
    title: str,
    *,
    condition: str,
    consequence: str,
    fix: str,
    sources: tuple[str, ...],
    needs: str,
    applies: Applies = Applies(),
    in_study: Severity | None = None,
    editions: str = "",
    unconfirmed: bool = False,
    yields_to: Mapping[str, str] | None = None,
    related: tuple[str, ...] = (),
) -> Callable[[Check], Rule]:
    """Make a rule of a check function; `needs` names parts of the subject, separated by spaces."""

    def made(check: Check) -> Rule:
        return Rule(
            id_,
            FAMILIES[id_[0]],
            severity,
            title,
            condition,
            consequence,
            fix,
            sources,
            check,
            frozenset(needs.split()),
            applies,
            in_study,
            editions,
            unconfirmed,
            yields_to or {},
            related,
        )

    return made


FAMILIES = {
    "T": "topology",
    "A": "affinity",
    "M": "memory",
    "R": "api",
    "W": "windows",
    "S": "sqlserver",
    "Q": "measurement",
}
"""First letter of a rule's id -> its family."""
