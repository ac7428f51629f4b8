"""Whether a VM's run ends by the declared rule, asked only between two blocks.

It uses the width of intervals and hours, never the effect that the intervals show. Every look is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from vnuma.domain.study.study import Study
from vnuma.domain.vm.percent import percent_text
from vnuma.engine.lease.context import VmContext
from vnuma.store import attempts, cells, facts
from vnuma.store.rows import AttemptLine, Cell

if TYPE_CHECKING:
    from vnuma.analysis.stopping import StopDecision

SCOPE = "stopping"
"""Scope of the facts about each look."""


@dataclass(frozen=True)
class Look:
    """What the rule saw before a block: hours of work so far, and the intervals if it uses them."""

    hours: float
    hours_with_next: float | None
    precision: StopDecision | None

    def reason(self, study: Study) -> str | None:
        """Why no further block is run; None to continue."""
        if self.precision and self.precision.stop and self.precision.widest is not None:
            wanted, widest = study.design.precision or 0.0, self.precision.widest
            return (
                f"precise: after {self.precision.blocks} blocks every 95% half-width is at most "
                f"{percent_text(wanted)} (widest {widest * 100:.2f}%)"
            )
        limit = study.design.max_hours
        if limit is not None and self.hours_with_next is not None and self.hours_with_next > limit:
            return (
                f"max_hours: {self.hours:.1f} h of work so far; one more block would probably exceed "
                f"{limit:g} h"
            )
        return None


def settle(context: VmContext, following: Cell) -> str | None:
    """Ask the rule before `following`; if it stops, give up the cells that are left.

    Returns the reason; None to continue, and in the middle of a block, where the rule is not asked.
    """
    with context.store.read() as connection:
        planned = cells.cells_of_run(connection, context.run.id, context.vm.id)
        past = attempts.lines_of_run(connection, context.run.id, context.vm.id)
    if following.block == 1 or any(attempt.block >= following.block for attempt in past):
        return None
    look = Look(
        _hours(past),
        _hours_with_next(past, following.block),
        _precision(context, planned, past) if context.study.design.precision else None,
    )
    reason = look.reason(context.study)
    with context.store.write() as write:
        if reason:
            cells.skip_cells(write, context.vm.id, context.token, reason=reason, from_block=following.block)
        document = {**asdict(look), "stopped": reason}
        facts.add_vm_facts(write, context.vm.id, SCOPE, {f"before block {following.block}": document})
    return reason


def _precision(context: VmContext, planned: Sequence[Cell], past: Sequence[AttemptLine]) -> StopDecision:
    """The decision of the study's `precision` on the blocks so far. `planned` and `past` are the VM's own."""
    from vnuma import analysis  # noqa: PLC0415 - a second of numpy and scipy that only this look needs
    from vnuma.store.analysed import cell_records  # noqa: PLC0415
    from vnuma.store.timed import timed_samples  # noqa: PLC0415

    with context.store.read() as connection:
        timed = timed_samples(connection, context.run.id, context.vm.id)
    return analysis.precision_look(
        timed,
        cell_records(planned, past, {context.vm.id: context.vm.name}),
        analysis.design_of(context.study, {cell.label for cell in planned}),
        vm=context.vm.name,
        target=context.study.design.precision or 0.0,
    )


def _hours(past: Sequence[AttemptLine]) -> float:
    """Hours of ended attempts, without the pauses between a stop and its resumption."""
    return sum((a.ended_at - a.started_at).total_seconds() for a in past if a.ended_at) / 3600


def _hours_with_next(past: Sequence[AttemptLine], block: int) -> float:
    """Hours with one more block as long as those before it were on average."""
    hours = _hours(past)
    return hours + hours / (block - 1)
