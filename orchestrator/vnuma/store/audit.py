"""The audit log's rows: who changed what on which VM, when, for which run and ticket, with which outcome."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, insert, select

from vnuma.store import tables
from vnuma.store.tables import all_of

_audit = tables.audit.c
_LINES = select(tables.audit, tables.run.c.name.label("run")).join(
    tables.run, tables.run.c.id == _audit.run_id, isouter=True
)

Outcome = Literal["intended", "made", "failed", "unknown", "noted"]


@dataclass(frozen=True)
class AuditLine:
    """A line of the log, or a change as its two lines tell it. `change` lists setting, before and after.

    A change has a line before it, `intended`, and one after it: `made`, `failed`, or `unknown` if vSphere's
    answer was lost or it reads back differently; the reason is in `detail`. A change that stays `intended`
    may have been made: its process ended. The line after it has the change where the one before it could not
    be written. `noted` changes nothing.
    `home` is where the line's file is. Rows of 0.1.0 have neither outcome nor home.
    """

    at: datetime
    who: str
    vm: str
    vm_key: str
    run: str | None
    ticket: str | None
    action: str
    change: Sequence[dict[str, Any]]
    detail: str | None
    outcome: Outcome | None = None
    home: str | None = None

    @property
    def ends_change(self) -> bool:
        """Whether it is the line after a change."""
        return self.outcome in ("made", "failed", "unknown") and not self.change

    @property
    def may_be_made(self) -> bool:
        """Whether it changed something, or may have."""
        return self.outcome not in ("failed", "noted")


def changes(lines: Iterable[AuditLine]) -> tuple[AuditLine, ...]:
    """The changes, each with its outcome, and the notes of these lines, which are in the order of writing."""
    found: list[AuditLine] = []
    begun: dict[tuple[str, str | None, str], int] = {}
    for line in lines:
        key = (line.vm_key, line.run, line.action)
        if line.ends_change and key in begun:
            intent = begun.pop(key)
            found[intent] = replace(found[intent], outcome=line.outcome, detail=line.detail)
            continue
        if line.outcome == "intended":
            begun[key] = len(found)
        found.append(line)
    return tuple(found)


def add_line(conn: Connection, line: AuditLine, run_id: int | None) -> None:
    """Add a line. Lines are never changed or removed."""
    values = vars(line) | {"run_id": run_id, "change_json": list(line.change)}
    conn.execute(
        insert(tables.audit), {column.name: values[column.name] for column in _audit if column.name in values}
    )


def newest(conn: Connection, run_id: int | None, most: int) -> tuple[AuditLine, ...]:
    """At most that many changes of one run or of all, newest first."""
    query = _LINES.order_by(_audit.id.desc()).limit(2 * most)
    if run_id is not None:
        query = query.where(_audit.run_id == run_id)
    return changes(reversed(all_of(conn, AuditLine, query)))[::-1][:most]


def lines(conn: Connection, run_id: int | None = None, *, vm_key: str | None = None) -> tuple[AuditLine, ...]:
    """Every line in the order of writing, or those of one run or VM."""
    query = _LINES.order_by(_audit.id)
    if run_id is not None:
        query = query.where(_audit.run_id == run_id)
    if vm_key is not None:
        query = query.where(_audit.vm_key == vm_key)
    return all_of(conn, AuditLine, query)
