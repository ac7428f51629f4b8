"""The audit log's rows: who changed what on which VM, when, for which run and ticket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from vnuma.store import tables
from vnuma.store.types import record_of

_audit = tables.audit.c
_LINES = select(tables.audit, tables.run.c.name.label("run")).join(
    tables.run, tables.run.c.id == _audit.run_id, isouter=True
)


@dataclass(frozen=True)
class AuditLine:
    """A change, or a failed one, with the reason in `detail`. `change` lists setting, before and after."""

    at: datetime
    who: str
    vm: str
    vm_key: str
    run: str | None
    ticket: str | None
    action: str
    change: Sequence[dict[str, Any]]
    detail: str | None


def add_line(conn: Connection, line: AuditLine, run_id: int | None) -> None:
    """Add a line. Lines are never changed or removed."""
    values = vars(line) | {"run_id": run_id, "change_json": list(line.change)}
    conn.execute(
        insert(tables.audit), {column.name: values[column.name] for column in _audit if column.name in values}
    )


def newest(conn: Connection, run_id: int | None, most: int) -> tuple[AuditLine, ...]:
    """At most that many lines of one run or of all, newest first."""
    query = _LINES.order_by(_audit.id.desc()).limit(most)
    if run_id is not None:
        query = query.where(_audit.run_id == run_id)
    return tuple(record_of(AuditLine, row) for row in conn.execute(query).mappings())


def lines(conn: Connection, run_id: int | None = None, *, vm_key: str | None = None) -> tuple[AuditLine, ...]:
    """Every line in the order of writing, or those of one run or VM."""
    query = _LINES.order_by(_audit.id)
    if run_id is not None:
        query = query.where(_audit.run_id == run_id)
    if vm_key is not None:
        query = query.where(_audit.vm_key == vm_key)
    return tuple(record_of(AuditLine, row) for row in conn.execute(query).mappings())
