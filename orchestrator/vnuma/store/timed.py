"""Read the timed samples of valid boots in bulk, a million in seconds; and stored rows as analysis records.

Excludes warm-ups, failed iterations and other attempts, which `samples` reads.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

from sqlalchemy import Connection, Select, Text, select, type_coerce

from vnuma.analysis.records import CellRecord, Sample
from vnuma.store import tables
from vnuma.store.rows import AttemptLine, Cell, CellState, Fact, Outcome

_sample, _attempt, _cell, _vm = tables.sample.c, tables.attempt.c, tables.cell.c, tables.vm.c

_BATCH = 10_000


@dataclass(frozen=True)
class TimedBatch:
    """Samples in order of their attempts, each with its documents as stored: JSON or None."""

    samples: list[Sample]
    waits: tuple[str | None, ...]
    executions: tuple[str | None, ...]


def timed_batches(conn: Connection, run_id: int, vm_id: int | None = None) -> Iterator[TimedBatch]:
    """The run's timed samples, or those of one VM; use within the read unit."""
    places = {
        attempt_id: (intern(label), intern(arm), block, intern(vm))
        for attempt_id, label, arm, block, vm in conn.execute(_places(run_id, vm_id))
    }
    found = conn.execute(_timed(run_id, vm_id).execution_options(yield_per=_BATCH))
    for rows in found.partitions():
        *_, waits, executions = zip(*rows, strict=True)
        yield TimedBatch(_made(rows, places), waits, executions)


def timed_samples(conn: Connection, run_id: int, vm_id: int | None = None) -> list[Sample]:
    """All of them, without their documents."""
    return [sample for batch in timed_batches(conn, run_id, vm_id) for sample in batch.samples]


def _made(rows: Iterable[Any], places: dict[int, tuple[str, str, int, str]]) -> list[Sample]:
    return [
        Sample(
            *places[attempt_id],
            size,
            intern(form),
            iteration,
            False,
            "measured",
            elapsed_ms,
            cpu_ms,
            client_ms,
            value,
            None if figures is None else json.loads(figures),
        )
        for attempt_id, size, form, iteration, elapsed_ms, cpu_ms, client_ms, value, figures, _, _ in rows
    ]


def _timed(run_id: int, vm_id: int | None) -> Select[Any]:
    query = (
        select(
            _sample.attempt_id,
            _sample.size,
            _sample.form,
            _sample.iteration,
            _sample.elapsed_ms,
            _sample.cpu_ms,
            _sample.client_ms,
            _sample.value,
            *(type_coerce(_sample[f"{name}_json"], Text) for name in ("figures", "waits", "execution")),
        )
        .join(tables.attempt, _attempt.id == _sample.attempt_id)
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .where(_cell.run_id == run_id, _attempt.outcome == str(Outcome.VALID))
        .where(_sample.warmup.is_(False), _sample.outcome == "measured")
        .order_by(_sample.attempt_id)
    )
    return query if vm_id is None else query.where(_cell.vm_id == vm_id)


def _places(run_id: int, vm_id: int | None) -> Select[Any]:
    """One row per valid attempt: its samples' place in the study."""
    query = (
        select(_attempt.id, _cell.label, _cell.arm, _cell.block, _vm.name)
        .join(tables.cell, _cell.id == _attempt.cell_id)
        .join(tables.vm, _vm.id == _cell.vm_id)
        .where(_cell.run_id == run_id, _attempt.outcome == str(Outcome.VALID))
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
