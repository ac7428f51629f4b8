"""Findings over time: new, gone and unchanged ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vnuma.checks.finding import Severity


@dataclass(frozen=True)
class RecordedCheck:
    """One check of a source (a vCenter, or an export). `read_at` is when its facts were read."""

    source: str
    kind: str
    read_at: datetime
    product_version: str
    simulated: str | None
    vms: int


@dataclass(frozen=True)
class StandingFinding:
    """A finding over time. `gone` is when a check no longer found it; None: it is present.

    `last` is the newest check that found it; if older than the source's last check, it could not be evaluated
    since.
    """

    id: int
    source: str
    rule: str
    kind: str
    key: str
    name: str
    severity: str
    first: datetime
    last: datetime
    gone: datetime | None


@dataclass(frozen=True)
class History:
    """A source's recorded findings since `since`.

    `new` are present and were first found after `since`; `gone` disappeared after it; `unchanged` have been
    present since before.
    """

    source: str
    checks: tuple[RecordedCheck, ...]
    since: datetime
    new: tuple[StandingFinding, ...]
    unchanged: tuple[StandingFinding, ...]
    gone: tuple[StandingFinding, ...]

    @property
    def simulated(self) -> str | None:
        """The lab's scenario if anything is simulated; the newest of several."""
        return next((check.simulated for check in reversed(self.checks) if check.simulated), None)

    @property
    def until(self) -> datetime:
        """When the newest facts were read."""
        return self.checks[-1].read_at

    def is_from_the_start(self, finding: StandingFinding) -> bool:
        """Whether the first check found it already, so that its age is only a minimum."""
        return finding.first == self.checks[0].read_at

    def was_seen_last(self, finding: StandingFinding) -> bool:
        """Whether the newest check could evaluate it; if not, it is neither confirmed nor gone."""
        return finding.last == self.until


def history_of(
    checks: tuple[RecordedCheck, ...], findings: tuple[StandingFinding, ...], since: datetime | None = None
) -> History:
    """The history of a source with at least one check; without `since`, from its last check but one on.

    Findings of each kind are sorted by severity, then oldest first.
    """
    start = since or checks[max(0, len(checks) - 2)].read_at
    findings = tuple(sorted(findings, key=lambda item: (Severity(item.severity).rank, item.first)))
    standing = [item for item in findings if item.gone is None]
    return History(
        source=checks[0].source,
        checks=checks,
        since=start,
        new=tuple(item for item in standing if item.first > start),
        unchanged=tuple(item for item in standing if item.first <= start),
        gone=tuple(item for item in findings if item.gone is not None and item.gone > start),
    )
