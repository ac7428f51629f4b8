"""How precise a VM's intervals are so far: the analysis, run between two blocks."""

from __future__ import annotations

from collections.abc import Sequence

from vnuma import analysis
from vnuma.analysis.stopping import StopDecision
from vnuma.engine.lease.context import VmContext
from vnuma.store.analysed import cell_records
from vnuma.store.rows import AttemptLine, Cell
from vnuma.store.timed import timed_samples


def precision_so_far(
    context: VmContext, planned: Sequence[Cell], past: Sequence[AttemptLine]
) -> StopDecision:
    """The decision of the study's `precision` on the blocks so far. `planned` and `past` are the VM's own."""
    with context.store.read() as connection:
        timed = timed_samples(connection, context.run.id, context.vm.id)
    return analysis.precision_look(
        timed,
        cell_records(planned, past, {context.vm.id: context.vm.name}),
        analysis.design_of(context.study, {cell.label for cell in planned}),
        vm=context.vm.name,
        target=context.study.design.precision or 0.0,
    )
