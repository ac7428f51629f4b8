"""Decides which cell comes next: order, resuming, stopping and limits.

The declared stopping rule is asked only between two blocks. It uses hours, and the width of intervals or the
verdicts of repeated ones; never the effect that an ordinary interval shows. Every look is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from vnuma.analysis.records import design_of
from vnuma.domain.study.study import Study
from vnuma.engine.access.context import VmContext
from vnuma.engine.lease.baseline import SomebodysChange
from vnuma.engine.lease.hours import closed
from vnuma.engine.lease.supervision import is_alive
from vnuma.errors import NoFigure, QuestionPending, ShutdownTimeout, VmHeld
from vnuma.store import attempts, cells, facts, leases, runs
from vnuma.store.cells import PERMANENT
from vnuma.store.open import Store
from vnuma.store.rows import AttemptLine, Busy, Cell, CellState, Claim, Outcome
from vnuma.store.tables import utc_now
from vnuma.words.validation import percent_text

if TYPE_CHECKING:
    from vnuma.analysis.stopping import DecidedLook, StopDecision


@dataclass(frozen=True)
class NoCell:
    """No cell to claim now. `final`: none later either; `why` is for people."""

    why: str
    final: bool = True


def claim_next_cell(context: VmContext) -> Claim | NoCell:
    """Claim the VM's next cell, or return why there is none.

    Raises LeaseLost when this play no longer holds the VM, VmHeld when a dead run left a measurement on this
    host open.
    """
    design = context.study.design
    why = why_no_more(context)
    if not why and (design.may_end_early or design.max_hours is not None):
        following = peek_next_cell(context)
        why = ask_stop_rule(context, following) if following else None
    if why:
        return NoCell(why)
    with context.store.write() as connection:
        # One play works on a VM at a time, so an attempt that is still open has lost its process.
        cells.interrupt_attempts(connection, context.vm.id, context.token)
        claimed = cells.claim_next(
            connection,
            context.vm.id,
            context.token,
            context.study.limits.attempts_per_cell,
            exclusive_host=context.study.design.neighbours == "take_turns",
        )
    if claimed is None:
        return NoCell("every cell has ended")
    if isinstance(claimed, Busy):
        _refuse_to_wait_for_the_dead(context.store, claimed)
        return NoCell(claimed.reason, final=False)
    return claimed


def _refuse_to_wait_for_the_dead(store: Store, busy: Busy) -> None:
    """Raise VmHeld for a measurement that nobody will end: waiting for it would last forever."""
    with store.read() as connection:
        found = runs.get_run(connection, busy.run_name)
        sites = {vm.name: vm.site for vm in leases.vms_of_run(connection, found.id)}
        other = runs.at_site(connection, found, sites.get(busy.vm_name))
    if not is_alive(other):
        raise VmHeld(
            f"{busy.reason}, but no process supervises {busy.run_name} any more.",
            fix=f"vnuma restore {busy.vm_name}, then continue.",
        )


def why_no_more(context: VmContext, clock: Callable[[], datetime] = utc_now) -> str | None:
    """Why the VM gets no further cell now, whatever is left.

    A stop, a guest that hangs, an unanswered question, missing privileges, too many failures, or allowed
    hours that end before a cell would.
    """
    run, study, vm = context.run, context.study, context.vm
    ask, most = context.store.ask, study.limits.attempts_per_cell
    now = ask(cells.limits_of, vm, most)
    if now.stop_requested:
        return "the run was asked to stop"
    past = ask(attempts.lines_of_run, run.id, vm.id)
    ended = [attempt for attempt in past if attempt.outcome not in {None, Outcome.INTERRUPTED}]
    if ended and not vm.at_baseline and ended[-1].reason in NEEDS_A_PERSON:
        return f"{vm.name} {NEEDS_A_PERSON[ended[-1].reason]}; it was left as it is"
    lasting = permanent_failure(past)
    if lasting and lasting.token == now.token:
        return f"another attempt would end like the last one: {lasting.detail}"
    if now.used_up > study.limits.max_failed_cells:
        return f"{now.used_up} cells failed, more than max_failed_cells: {study.limits.max_failed_cells}"
    shut = closed(study, past, clock())
    return shut.why if shut else None


def peek_next_cell(context: VmContext) -> Cell | None:
    """The cell that the next claim would take; does not take it."""
    most = context.study.limits.attempts_per_cell
    return context.store.ask(cells.peek_next, context.vm.id, most)


_WITHOUT_RESULT = frozenset({Outcome.FAILED, Outcome.INVALID})


NEEDS_A_PERSON = {
    ShutdownTimeout.reason: "did not shut down",
    QuestionPending.reason: "waits for an answer in vCenter",
    SomebodysChange.reason: "was changed by somebody else",
}
"""Reasons of failures that a further attempt would repeat, with what they mean for the VM, which is left as
it is.
"""


def permanent_failure(past: Sequence[AttemptLine]) -> AttemptLine | None:
    """The VM's latest attempt if any further one would fail alike; else None.

    Applies to the holder of that attempt's token: a later one tries again.
    """
    latest = max(past, key=lambda attempt: attempt.id, default=None)
    return latest if latest and (_lasts(latest) or _never_read(past)) else None


def _never_read(past: Sequence[AttemptLine]) -> bool:
    """Whether the last two attempts' programs gave no figure, and none ever did."""
    last = sorted(past, key=lambda attempt: attempt.id)[-2:]
    unread = [one for one in last if one.reason == NoFigure.reason]
    return len(unread) == 2 and all(one.outcome is not Outcome.VALID for one in past)


def without_result(attempt: AttemptLine) -> bool:
    """Whether it ended without what its cell needs; an interrupted attempt did not end."""
    return attempt.outcome in _WITHOUT_RESULT


def needs_a_person(attempt: AttemptLine) -> bool:
    """Whether a person has to act before a further attempt makes sense."""
    return without_result(attempt) and (attempt.reason in NEEDS_A_PERSON or _lasts(attempt))


def _lasts(attempt: AttemptLine) -> bool:
    return without_result(attempt) and attempt.reason in PERMANENT


LOOKS = "stopping"
"""Scope of the facts about each look."""


def stop_reason(
    study: Study,
    hours: float,
    hours_with_next: float,
    precision: StopDecision | None,
    decided: DecidedLook | None = None,
) -> str | None:
    """Why no further block is run, by the hours of work so far, and the intervals if the rule uses them.

    None to continue.
    """
    if precision and precision.stop and precision.widest is not None:
        wanted = percent_text(study.design.precision or 0.0)
        return (
            f"precise: after {precision.blocks} blocks every 95% half-width is at most {wanted} "
            f"(widest {precision.widest * 100:.2f}%)"
        )
    if decided and not decided.stay:
        return f"decided: every arm has its verdict after {decided.blocks} blocks"
    limit = study.design.max_hours
    if limit is not None and hours_with_next > limit:
        return f"max_hours: {hours:.1f} h of work so far; one more block would probably exceed {limit:g} h"
    return None


def ask_stop_rule(context: VmContext, following: Cell) -> str | None:
    """Ask the rule before `following`; if it stops, give up the cells that are left.

    Returns the reason; None to continue, and in the middle of a block, where the rule is not asked.
    """
    with context.store.read() as connection:
        planned = cells.cells_of_run(connection, context.run.id, context.vm.id)
        past = attempts.lines_of_run(connection, context.run.id, context.vm.id)
    if following.block == 1 or any(attempt.block >= following.block for attempt in past):
        return None
    ruled = context.study.design.may_end_early
    decided, precision = _looks(context, planned, past) if ruled else (None, None)
    due = [cell for cell in planned if not decided or cell.label not in decided.leave]
    hours, with_next = _hours(past), _hours_with_next(past, planned, due, following.block)
    reason = stop_reason(context.study, hours, with_next, precision, decided)
    give_up = partial(cells.skip_cells, vm_id=context.vm.id, token=context.token, from_block=following.block)
    with context.store.write() as write:
        if reason:
            give_up(write, reason=reason)
        elif decided and decided.leave:
            give_up(write, reason=f"decided after block {decided.blocks}", labels=list(decided.leave))
        document = {
            "hours": hours,
            "hours_with_next": with_next,
            "precision": precision and asdict(precision),
            "decided": decided and asdict(decided),
            "stopped": reason,
        }
        facts.add_vm_facts(write, context.vm.id, LOOKS, {f"before block {following.block}": document})
    return reason


def _looks(
    context: VmContext, planned: Sequence[Cell], past: Sequence[AttemptLine]
) -> tuple[DecidedLook | None, StopDecision | None]:
    """Which arms have a verdict by the VM's blocks so far, and the decision of the study's `precision`.

    A function of its stored samples and cells, and of the declared design.
    """
    from vnuma.analysis.analyse import decided_look, precision_look  # noqa: PLC0415 - a second of numpy
    from vnuma.store.timed import cell_records, timed_series  # noqa: PLC0415 - as above

    run, vm, study = context.run, context.vm, context.study
    with context.store.read() as connection:
        timed = timed_series(connection, run.id, vm.id)
        used_up = cells.used_up_cells(connection, run.id, study.limits.attempts_per_cell)
    records = cell_records(planned, past, {vm.id: vm.name}, used_up=used_up)
    seen = (timed, records, design_of(study, {cell.label for cell in planned}))
    decided = decided_look(*seen, vm=vm.name) if study.design.stop == "decided" else None
    target = study.design.precision
    return decided, precision_look(*seen, vm=vm.name, target=target) if target else None


def _hours(past: Sequence[AttemptLine]) -> float:
    """Hours of ended attempts, without the pauses between a stop and its resumption."""
    return sum(attempt.seconds for attempt in past) / 3600


def _hours_with_next(
    past: Sequence[AttemptLine], planned: Sequence[Cell], due: Sequence[Cell], block: int
) -> float:
    """Hours with the cells that are `due` in one more block, each as long as those before on average."""
    hours = _hours(past)
    before = sum(cell.block < block and cell.state is not CellState.SKIPPED for cell in planned)
    more = sum(cell.block == block and cell.state is not CellState.SKIPPED for cell in due)
    return hours + hours * more / before
