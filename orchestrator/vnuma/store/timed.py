"""Read timed iterations of valid boots in bulk, a million in seconds; and stored rows as analysis records.

Excludes warm-ups, failed iterations and other attempts, which `samples` reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Connection, Select, Text, bindparam, select, type_coerce

from vnuma.analysis.records import CellRecord, Series
from vnuma.store import tables
from vnuma.store.rows import AttemptLine, Cell, CellState, Fact, Outcome

_sample, _attempt, _cell, _vm = tables.sample.c, tables.attempt.c, tables.cell.c, tables.vm.c

_ATTEMPTS = 10
"""Attempts read at a time, in the order of the samples' key, so that nothing is sorted."""


@dataclass(frozen=True)
class Timed:
    """A series with the documents of its iterations as stored: JSON or None."""

    series: Series
    waits: tuple[str | None, ...]
    executions: tuple[str | None, ...]


def timed(conn: Connection, run_id: int, vm_id: int | None = None) -> Iterator[Timed]:
    """The run's timed iterations, or those of one VM, by attempt; use within the read unit."""
    places = {
        attempt: (label, arm, block, vm)
        for attempt, label, arm, block, vm in conn.execute(_places(run_id, vm_id))
    }
    attempts = list(places)
    for first in range(0, len(attempts), _ATTEMPTS):
        rows = conn.execute(_TIMED, {"attempts": attempts[first : first + _ATTEMPTS]}).all()
        for (attempt, _, size, form), own in groupby(rows, itemgetter(0, 1, 2, 3)):
            *_, elapsed, cpu, client, value, figures, waits, executions = zip(*own, strict=True)
            known = tuple(documents(figures)) if any(figures) else ()
            yield Timed(
                Series(*places[attempt], size, form, elapsed, cpu, client, value, known), waits, executions
            )


def timed_series(conn: Connection, run_id: int, vm_id: int | None = None) -> list[Series]:
    """All of them, without their documents."""
    return [one.series for one in timed(conn, run_id, vm_id)]


def documents(texts: Iterable[str | None]) -> list[Any]:
    """Stored documents: reading them together is much faster than one by one."""
    found: list[Any] = from_json(f"[{','.join([text or 'null' for text in texts])}]")
    return found


_TIMED = (
    select(
        _sample.attempt_id,
        _sample.workload,
        _sample.size,
        _sample.form,
        _sample.elapsed_ms,
        _sample.cpu_ms,
        _sample.client_ms,
        _sample.value,
        *(type_coerce(_sample[f"{name}_json"], Text) for name in ("figures", "waits", "execution")),
    )
    .where(_sample.attempt_id.in_(bindparam("attempts", expanding=True)))
    .where(_sample.warmup.is_(False), _sample.outcome == "measured")
    .order_by(_sample.attempt_id, _sample.workload, _sample.size, _sample.form, _sample.iteration)
)


def _places(run_id: int, vm_id: int | None) -> Select[Any]:
    """One row per valid attempt: its samples' place in the study."""
    query = (
        select(_attempt.id, _cell.label, _cell.arm, _cell.block, _vm.name)
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .join(tables.vm, _vm.id == _cell.vm_id)
        .where(_cell.run_id == run_id, _attempt.outcome == str(Outcome.VALID))
        .order_by(_attempt.id)
    )
    return query if vm_id is None else query.where(_cell.vm_id == vm_id)


def cell_records(
    planned: Iterable[Cell],
    tried: Iterable[AttemptLine],
    names: Mapping[int, str],
    known: Iterable[Fact] = (),
    used_up: Collection[int] = (),
) -> list[CellRecord]:
    """Cells with the reason for a missing result: their own, or their last attempt's.

    `names` are the VMs' inventory names by id; `known` are facts, including the sentinel's times; `used_up`
    are cells that are not tried again (`cells.used_up_cells`).
    """
    watched = {
        fact.attempt_id: fact.value for fact in known if (fact.scope, fact.key) == ("sentinel", "elapsed_ms")
    }
    last = {attempt.cell_id: attempt for attempt in tried}
    return [
        CellRecord(
            label=cell.label,
            arm=cell.arm,
            block=cell.block,
            vm=names[cell.vm_id],
            outcome=str(cell.state),
            reason=_reason(cell, last.get(cell.id)),
            position=cell.position,
            sentinel_ms=_sentinel(cell, last.get(cell.id), watched),
            tried_again=cell.state is CellState.FAILED and cell.id not in used_up,
        )
        for cell in planned
    ]


def _sentinel(
    cell: Cell, last: AttemptLine | None, watched: Mapping[int | None, object]
) -> tuple[float, ...]:
    """The sentinel's times in a cell's valid attempt, which is its last."""
    times = watched.get(last.id) if last and cell.state is CellState.VALID else None
    return tuple(map(float, times)) if isinstance(times, list) else ()


def _reason(cell: Cell, last: AttemptLine | None) -> str:
    if cell.state is CellState.VALID:
        return ""
    if cell.reason:
        return cell.reason
    return (last.reason or "") if last else ""
