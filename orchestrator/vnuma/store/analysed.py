"""Stored rows as the analysis takes them: the one translation between the two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vnuma.analysis.records import CellRecord, Sample
from vnuma.store.rows import Attempt, AttemptLine, Cell, CellState
from vnuma.store.samples import StoredSample


def analysis_sample(stored: StoredSample) -> Sample:
    """One stored sample."""
    sample = stored.sample
    return Sample(
        label=stored.label,
        arm=stored.arm,
        block=stored.block,
        vm=stored.vm,
        size=sample.size,
        form=sample.form,
        iteration=sample.iteration,
        warmup=sample.warmup,
        outcome=sample.outcome,
        elapsed_ms=sample.elapsed_ms,
        cpu_ms=sample.cpu_ms,
        client_ms=sample.client_ms,
        rows=sample.rows,
    )


def cell_records(
    planned: Iterable[Cell], tried: Iterable[Attempt | AttemptLine], names: Mapping[int, str]
) -> list[CellRecord]:
    """Cells with the reason why they have no result: their own, or that of their last attempt.

    `names` are the VMs' inventory names by id.
    """
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
        )
        for cell in planned
    ]


def _reason(cell: Cell, last: Attempt | AttemptLine | None) -> str:
    if cell.state is CellState.VALID:
        return ""
    if cell.reason:
        return cell.reason
    return (last.reason or "") if last else ""
