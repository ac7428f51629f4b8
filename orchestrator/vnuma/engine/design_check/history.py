"""Drift of an estate over time: checks recorded in the store, and how long each finding has lasted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection

from vnuma import __version__
from vnuma.checks.against_design import DRIFT
from vnuma.checks.check_history import (
    Earlier,
    ExaminedObjects,
    History,
    RecordedCheck,
    StandingFinding,
    earlier_of,
    history_of,
)
from vnuma.checks.result import CheckResult, Judged, Key, Source
from vnuma.checks.rule import Severity
from vnuma.engine.design_check.check import CheckRequest, run_check
from vnuma.errors import InputError
from vnuma.estate import snapshot
from vnuma.store import estate_checks
from vnuma.store.estate_checks import NewFinding
from vnuma.store.open import Store


def record(store: Store, result: CheckResult) -> Earlier | None:
    """Write down what a check found; what was open before it, or None if this is the first of its sources.

    A source's checks are recorded in the order in which their facts were read. Raises InputError for
    facts that are not newer than those recorded last, and StoreError.
    """
    before: list[tuple[str, Sequence[StandingFinding]]] = []
    seen = ExaminedObjects(result)
    with store.write() as connection:
        estate_checks.one_at_a_time(connection)
        for source in result.sources:
            checks = estate_checks.checks_of(connection, source.name)
            check = _check(source, result)
            _require_newer(check, checks)
            open_findings = estate_checks.findings_of(connection, source.name, standing=True)
            _write(connection, check, _found(result, source), open_findings, seen)
            if checks:
                before.append((checks[-1].read_at.isoformat(timespec="seconds"), open_findings))
    if not before:
        return None
    return Earlier(
        min(read_at for read_at, _ in before),
        {_key(item): item.name for _, open_findings in before for item in open_findings},
    )


def _write(
    connection: Connection,
    check: RecordedCheck,
    found: Mapping[Key, NewFinding],
    open_findings: Sequence[StandingFinding],
    seen: ExaminedObjects,
) -> None:
    """One source's findings: those that began, those found again, and those that are gone."""
    number = estate_checks.add_check(connection, check)
    known = {_key(item): item for item in open_findings}
    gone = [
        item.id
        for key, item in known.items()
        if key not in found and seen.would_find(key, item.name, check.source)
    ]
    estate_checks.confirm_findings(connection, number, [known[key].id for key in found if key in known])
    estate_checks.rename(
        connection,
        {
            known[key].id: item.name
            for key, item in found.items()
            if key in known and known[key].name != item.name
        },
    )
    estate_checks.end(connection, number, gone)
    began = [item for key, item in found.items() if key not in known]
    estate_checks.begin(connection, number, check.source, began)


def history(store: Store, since: datetime | None = None) -> list[History]:
    """Every source's history; without `since`, from its last check but one on.

    Raises InputError where no check is recorded, and StoreError.
    """
    with store.read() as connection:
        checks = estate_checks.checks_of(connection)
        findings = estate_checks.findings_of(connection)
    if not checks:
        raise InputError(f"No recorded checks in {store.place}.", fix="Record one: vnuma check ... --record")
    names = dict.fromkeys(check.source for check in checks)
    return [
        history_of(
            tuple(check for check in checks if check.source == name),
            tuple(finding for finding in findings if finding.source == name),
            since,
        )
        for name in names
    ]


def _check(source: Source, result: CheckResult) -> RecordedCheck:
    return RecordedCheck(
        source=source.name,
        kind=source.kind,
        read_at=datetime.fromisoformat(source.read_at).astimezone(UTC),
        product_version=__version__,
        simulated=result.simulated,
        vms=sum(vm.source == source.name for vm in result.vms),
    )


def _require_newer(check: RecordedCheck, earlier: Sequence[RecordedCheck]) -> None:
    if earlier and check.read_at <= earlier[-1].read_at:
        raise InputError(
            f"The facts of {check.source} are from {check.read_at:%Y-%m-%d %H:%M:%S}; a check of newer "
            f"facts ({earlier[-1].read_at:%Y-%m-%d %H:%M:%S}) is already recorded.",
            fix="Record checks in the order in which their facts were read, or omit --record.",
        )


def _found(result: CheckResult, source: Source) -> dict[Key, NewFinding]:
    """The findings of a source, one for each rule and object: the worst where VMs differ; and its drift."""
    found: dict[Key, Judged] = {}
    for vm in result.vms:
        if vm.source != source.name:
            continue
        for item in vm.findings:
            known = found.get(item.key)
            if known is None or item.severity.rank < known.severity.rank:
                found[item.key] = item
    drifted = result.drift.vms if result.drift else ()
    return {key: NewFinding(*key, it.finding.name, it.severity.value) for key, it in found.items()} | {
        (DRIFT, "vm", vm.facts.key): NewFinding(DRIFT, "vm", vm.facts.key, vm.facts.name, Severity.WARN.value)
        for vm in drifted
        if vm.source == source.name
    }


def _key(item: StandingFinding) -> Key:
    return item.rule, item.kind, item.key  # type: ignore[return-value]  # a kind as it was written


def earlier(path: Path, asked: CheckRequest) -> Earlier:
    """What was found then. Of a snapshot, what today's rules find in the facts of then.

    Raises InputError for any other file.
    """
    document = snapshot.read_json(path)
    if not snapshot.is_snapshot(document):
        return earlier_of(document, path)
    estates = snapshot.from_document(document, path)
    result = run_check(estates, replace(asked, sql=None))
    found = {item.key: item.finding.name for vm in result.vms for item in vm.findings}
    sources = frozenset(estate.source for estate in estates)
    return Earlier(min(estate.read_at for estate in estates), found, sources)


def require_same_estate(result: CheckResult, then: Earlier, path: Path) -> None:
    """Raise InputError where the two have neither a source nor an object in common.

    An export has another file name every time, and VMs come and go: either is enough.
    """
    now = {source.name for source in result.sources}
    if not then.found or now & then.sources:
        return
    if any(ExaminedObjects(result).knows(identity, name) for (_, _, identity), name in then.found.items()):
        return
    raise InputError(
        f"{path} is a check of a different estate: {', '.join(sorted(then.sources))}, not "
        f"{', '.join(sorted(now))}; they share no objects.",
        fix="Name an earlier check of this estate: --baseline FILE",
    )
