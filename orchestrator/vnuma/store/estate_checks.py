"""Checks of an estate over time. A finding is one row, from the check that first found it to the first that
no longer did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, insert, select, text, update

from vnuma.checks.check_history import RecordedCheck, StandingFinding
from vnuma.store import tables
from vnuma.store.tables import utc_now

_check, _finding = tables.estate_check.c, tables.estate_finding.c


@dataclass(frozen=True)
class NewFinding:
    """A finding that is new in a check."""

    rule: str
    kind: str
    key: str
    name: str
    severity: str


def one_at_a_time(conn: Connection) -> None:
    """Until this transaction ends, let no other one record a check; one that waited sees this one's."""
    if conn.dialect.name == "postgresql":
        conn.execute(text("LOCK TABLE estate_check IN SHARE ROW EXCLUSIVE MODE"))


def add_check(conn: Connection, check: RecordedCheck) -> int:
    """Store a check; returns its id."""
    made = insert(tables.estate_check).returning(_check.id)
    values = {**vars(check), "recorded_at": utc_now()}
    return int(conn.execute(made, values).scalar_one())


def checks_of(conn: Connection, source: str | None = None) -> tuple[RecordedCheck, ...]:
    """The checks of a source, or of all, by the age of their facts."""
    query = select(*(_check[field.name] for field in fields(RecordedCheck))).order_by(_check.read_at)
    if source is not None:
        query = query.where(_check.source == source)
    return tuple(RecordedCheck(*row) for row in conn.execute(query))


def findings_of(
    conn: Connection, source: str | None = None, *, standing: bool = False
) -> tuple[StandingFinding, ...]:
    """Findings of a source or of all, oldest first; with `standing`, only the present ones."""
    first, last, gone = (tables.estate_check.alias(name) for name in ("first", "last", "gone"))
    query = (
        select(
            *(_finding.id, _finding.source, _finding.rule, _finding.object_kind, _finding.object_key),
            *(_finding.object_name, _finding.severity, first.c.read_at, last.c.read_at, gone.c.read_at),
        )
        .join(first, first.c.id == _finding.first_check_id)
        .join(last, last.c.id == _finding.last_check_id)
        .join(gone, gone.c.id == _finding.gone_check_id, isouter=True)
        .order_by(first.c.read_at, _finding.rule, _finding.object_name, _finding.id)
    )
    if source is not None:
        query = query.where(_finding.source == source)
    if standing:
        query = query.where(_finding.gone_check_id.is_(None))
    rows: Iterable[Any] = conn.execute(query)
    return tuple(StandingFinding(*row) for row in rows)


def begin(conn: Connection, check: int, source: str, found: Sequence[NewFinding]) -> None:
    """Store findings that this check found first."""
    rows = [
        {
            "source": source,
            "rule": item.rule,
            "object_kind": item.kind,
            "object_key": item.key,
            "object_name": item.name,
            "severity": item.severity,
            "first_check_id": check,
            "last_check_id": check,
        }
        for item in found
    ]
    if rows:
        conn.execute(insert(tables.estate_finding), rows)


def confirm_findings(conn: Connection, check: int, ids: Collection[int]) -> None:
    """Store that this check confirmed these findings."""
    _update(conn, ids, last_check_id=check)


def rename(conn: Connection, names: Mapping[int, str]) -> None:
    """Update the names of objects that were renamed since their findings began."""
    for number, name in names.items():
        _update(conn, [number], object_name=name)


def end(conn: Connection, check: int, ids: Collection[int]) -> None:
    """End findings that this check could have found and did not."""
    _update(conn, ids, gone_check_id=check)


_AT_ONCE = 500
"""Ids in one statement, below every database's limit of parameters."""


def _update(conn: Connection, ids: Collection[int], **values: object) -> None:
    every = sorted(ids)
    for start in range(0, len(every), _AT_ONCE):
        some = _finding.id.in_(every[start : start + _AT_ONCE])
        conn.execute(update(tables.estate_finding).where(some).values(**values))
