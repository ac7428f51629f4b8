"""Detect changes with a few small queries, however many readers watch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from typing import Any

from sqlalchemy import Connection, Row, func, select

from vnuma.store import tables
from vnuma.store.rows import Outcome, RunState

_run, _vm, _cell, _attempt = tables.run.c, tables.vm.c, tables.cell.c, tables.attempt.c
_site = tables.site.c
_finding, _check = tables.estate_finding.c, tables.estate_check.c
_OVER = [state for state in RunState if state.ended]


def run_marks(conn: Connection) -> Mapping[int, Hashable]:
    """A mark for each run: progress and figures have changed only if it differs.

    Attempts are read only for runs that have not ended: those of others change only after the run's state.
    """
    marks: dict[int, list[Hashable]] = defaultdict(list)
    state = (_run.id, _run.state, _run.stop_requested, _run.finished_at, _run.supervisor_pid)
    for row in conn.execute(select(*state).order_by(_run.id)):
        marks[row.id].append(tuple(row))
    parts = (_site.run_id, _site.node, _site.supervisor_pid, _site.end_json.is_(None))
    for part in conn.execute(select(*parts).order_by(_site.run_id, _site.node)):
        marks[part.run_id].append(tuple(part))
    for vm in conn.execute(select(_vm.run_id, _vm.restored_at, _vm.restore_outcome).order_by(_vm.id)):
        marks[vm.run_id].append(tuple(vm))
    tried = (
        select(
            *(_cell.run_id, func.count(), func.count(_attempt.ended_at)),
            *(func.max(_attempt.step_at), func.max(_attempt.id)),
        )
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .where(_cell.run_id.in_(select(_run.id).where(_run.state.not_in(_OVER))))
        .group_by(_cell.run_id)
    )
    for attempt in conn.execute(tried):
        marks[attempt.run_id].append(tuple(attempt))
    return {run: tuple(parts) for run, parts in marks.items()}


def figures_mark(conn: Connection, run_id: int) -> Hashable:
    """A mark for a report: also covers the run's facts, some of which come after its end."""
    facts = select(func.max(tables.fact.c.id)).where(tables.fact.c.run_id == run_id)
    ended = (
        select(func.count(_attempt.ended_at))
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .where(_cell.run_id == run_id)
    )
    skipped = select(func.count()).where(_cell.run_id == run_id, _cell.state == "skipped")
    row = conn.execute(
        select(_run.state, facts.scalar_subquery(), ended.scalar_subquery(), skipped.scalar_subquery()).where(
            _run.id == run_id
        )
    ).one()
    restored = conn.execute(select(_vm.restored_at, _vm.restore_outcome).where(_vm.run_id == run_id))
    return tuple(row), tuple(map(tuple, restored))


def cell_totals(conn: Connection) -> tuple[Row[*tuple[Any, ...]], ...]:
    """(simulated, state, count) of the cells of all runs."""
    query = (
        select(_run.simulated, _cell.state, func.count().label("number"))
        .join(tables.run, _run.id == _cell.run_id)
        .group_by(_run.simulated, _cell.state)
    )
    return tuple(conn.execute(query))


def failure_totals(conn: Connection) -> tuple[Row[*tuple[Any, ...]], ...]:
    """(simulated, outcome, reason, count) of attempts without a result, over all runs."""
    query = (
        select(_run.simulated, _attempt.outcome, _attempt.reason, func.count().label("number"))
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .join(tables.run, _run.id == _cell.run_id)
        .where(_attempt.outcome.is_not(None), _attempt.outcome != Outcome.VALID)
        .group_by(_run.simulated, _attempt.outcome, _attempt.reason)
    )
    return tuple(conn.execute(query))


def finding_totals(conn: Connection) -> tuple[Row[*tuple[Any, ...]], ...]:
    """(source, simulated, rule, severity, count) of present findings, by the last check of each source."""
    last = (
        select(_check.simulated)
        .where(_check.source == _finding.source)
        .order_by(_check.read_at.desc())
        .limit(1)
        .scalar_subquery()
        .label("simulated")
    )
    query = (
        select(_finding.source, last, _finding.rule, _finding.severity, func.count().label("number"))
        .where(_finding.gone_check_id.is_(None))
        .group_by(_finding.source, _finding.rule, _finding.severity)
    )
    return tuple(conn.execute(query))
