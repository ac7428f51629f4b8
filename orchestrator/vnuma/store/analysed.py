"""Translate stored rows into the analysis's records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from vnuma.analysis.records import CellRecord
from vnuma.store.rows import AttemptLine, Cell, Fact
from vnuma.store.states import CellState


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
