"""Findings over time: new, gone and unchanged ones, and what a check was able to find.

Only there does a missing finding mean that it is fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from vnuma.checks.against_design import DRIFT
from vnuma.checks.result import SCHEMA, CheckResult, Key, not_sql
from vnuma.checks.rule import Severity
from vnuma.errors import InputError


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
    def by_state(self) -> dict[str, tuple[StandingFinding, ...]]:
        """All of them by state, as reports list them."""
        return {"new": self.new, "gone": self.gone, "unchanged": self.unchanged}

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
    checks: tuple[RecordedCheck, ...], findings: tuple[StandingFinding, ...], since: datetime | None
) -> History:
    """The history of a source with at least one check; without `since`, from its last check but one on.

    Findings of each kind are sorted by severity, SQL Server's VMs first, then oldest first.
    """
    start = since or checks[max(0, len(checks) - 2)].read_at
    findings = tuple(sorted(findings, key=_worst_first))
    standing = [item for item in findings if item.gone is None]
    return History(
        source=checks[0].source,
        checks=checks,
        since=start,
        new=tuple(item for item in standing if item.first > start),
        unchanged=tuple(item for item in standing if item.first <= start),
        gone=tuple(item for item in findings if item.gone is not None and item.gone > start),
    )


def _worst_first(item: StandingFinding) -> tuple[int, bool, datetime]:
    return Severity(item.severity).rank, not_sql(item.name), item.first


class ExaminedObjects:
    """What one check examined, by rule and object."""

    def __init__(self, result: CheckResult) -> None:
        self._result = result
        self._rules = {rule.id for rule in result.rules} | ({DRIFT} if result.drift else set())
        self._sources = {source.name for source in result.sources}
        self._unseen = {item.name for item in result.unseen}
        self._checked = {name for vm in result.vms for name in (vm.key, vm.host, vm.cluster) if name}
        not_compared = (*result.drift.only_site, *result.drift.unmatched) if result.drift else ()
        self._unknown = {(DRIFT, one.name) for one in not_compared} | {
            (rule, name)
            for vm in result.vms
            for rule in vm.not_evaluated
            for name in (vm.key, vm.host, vm.cluster)
        }

    def would_find(self, key: Key, name: str, source: str | None = None) -> bool:
        """Whether the check could have found a finding with this key on an object of this name.

        `source` is where it was found before, if known. False if the rule was not requested or not evaluated,
        if filters excluded the object, or if it or its source was not read.
        """
        rule, _, identity = key
        if rule not in self._rules or source not in (None, *self._sources):
            return False
        if (rule, identity) in self._unknown or (rule, name) in self._unknown:
            return False
        if identity in self._checked or name in self._checked:
            return True
        if {identity, name} & self._result.not_asked or name in self._unseen:
            return False
        return all(it.whole for it in self._result.sources if source in (None, it.name))

    def knows(self, identity: str, name: str) -> bool:
        """Whether an object existed: checked, excluded or not readable."""
        there = self._checked | self._result.not_asked | self._unseen
        return bool({identity, name} & there)


@dataclass(frozen=True)
class Earlier:
    """An earlier check's findings by their identity, each with its object's name."""

    checked_at: str
    found: Mapping[Key, str]
    sources: frozenset[str] = frozenset()
    """The names of what was checked: vCenters or files."""


def earlier_of(document: Any, path: Path) -> Earlier:
    """The findings in a check's JSON document. Raises InputError for any other file."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(
            f"{path} is neither a check nor a snapshot of an inventory.",
            fix="Write one: vnuma check ... --format json > FILE",
        )
    try:
        found = {
            (item["rule"], item["object"]["kind"], item["object"]["key"]): item["object"]["name"]
            for item in document["findings"]
        }
        sources = frozenset(str(source["name"]) for source in document["sources"])
        return Earlier(str(document["checked_at"]), found, sources)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: {error} is missing.", fix="Create it again.") from error
