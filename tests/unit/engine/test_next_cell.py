"""Why a VM gets no further cell, and what a claim does with what it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.report.build import study_text
from tests.store.build import Leased, claim, new_run, new_vm
from vnuma.analysis.stopping import DecidedLook, StopDecision
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.target import Target
from vnuma.engine.run.next_cell import NoCell, claim_next_cell, needs_a_person, stop_reason, why_no_more
from vnuma.errors import LeaseLost, VmHeld
from vnuma.store import attempts, cells, leases, runs
from vnuma.store.open import Store
from vnuma.store.rows import CellState, Claim, Outcome, RestoreOutcome, StopRequest

WEDNESDAY_NIGHT = datetime(2026, 11, 25, 22, tzinfo=UTC)
LIMITS = "limits: {attempts_per_cell: 2, max_failed_cells: 1}\n"
End = tuple[Outcome, str | None]
VALID: End = (Outcome.VALID, None)
INTERRUPTED: End = (Outcome.INTERRUPTED, "interrupted")


def failed(reason: str) -> End:
    """An attempt without a result."""
    return Outcome.FAILED, reason


def context_of(store: Store, leased: Leased, windows: str = "Mon-Sun 00:00-24:00") -> VmContext:
    """A play's context of that VM as it is now."""
    hours = f"allowed_hours: {{time_zone: UTC, windows: ['{windows}'], restore_s: 600}}\n"
    study = parse_study(study_text() + LIMITS + hours, "study.yml")
    with store.read() as connection:
        vm = leases.get_vm(connection, leased.vm.id)
    target = Target(name="sql16", vm="sql16", vcenter=None, sql=None)
    return VmContext(store, leased.run, study, vm, target, leased.token)


def ended(store: Store, leased: Leased, *ends: End) -> None:
    """The VM's next attempts, and how they ended."""
    for outcome, reason in ends:
        one = claim(store, leased, most=2)
        with store.write() as connection:
            attempts.finish(connection, one.id, one.token, outcome, reason=reason, detail=reason or "")


TOOLS = failed("tools_timeout")


@pytest.mark.parametrize(
    ("past", "why"),
    [
        ([], None),
        ([VALID], None),
        ([TOOLS], None),
        ([TOOLS, TOOLS], None),  # a cell is used up, of which the study allows one
        ([TOOLS] * 4, "2 cells failed, more than max_failed_cells: 1"),
        ([TOOLS, INTERRUPTED, TOOLS, INTERRUPTED, TOOLS], None),
        ([failed("shutdown_timeout")], "did not shut down"),
        ([failed("shutdown_timeout"), INTERRUPTED], "did not shut down"),
        ([failed("shutdown_timeout"), VALID], None),
        ([failed("question_pending")], "waits for an answer in vCenter"),
        ([(Outcome.INVALID, "somebodys_change")], None),
        ([(Outcome.INVALID, "changed_by_somebody")], "was changed by somebody else"),
        ([failed("account_refused")], "another attempt would end like the last one: account_refused"),
        ([failed("account_refused"), VALID], None),
        ([failed("no_figure")], None),
        ([failed("no_figure")] * 2, "another attempt would end like the last one: no_figure"),
        ([VALID, failed("no_figure"), failed("no_figure")], None),
    ],
)
def test_a_vm_gets_a_further_cell_unless_its_attempts_say_otherwise(
    store: Store, past: Sequence[End], why: str | None
) -> None:
    """Its latest attempt that ended decides, and how many cells are used up."""
    leased = new_vm(store, arms=4)
    ended(store, leased, *past)

    found = why_no_more(context_of(store, leased))

    assert (found is None) if why is None else (why in str(found)), found


@pytest.mark.parametrize(
    ("windows", "closed"),
    [("Wed 20:00-06:00", False), ("Wed 20:00-22:10", True), ("Thu 20:00-06:00", True)],
)
def test_a_cell_begins_only_where_the_hours_hold_it_and_the_restore(
    store: Store, windows: str, closed: bool
) -> None:
    """At 22:00 on a Wednesday."""
    context = context_of(store, new_vm(store, arms=1), windows)

    assert bool(why_no_more(context, lambda: WEDNESDAY_NIGHT)) is closed


def test_what_was_restored_or_taken_over_since_is_tried_again(store: Store) -> None:
    """A guest has shut down since; whoever resumes has another token, and perhaps another password."""
    leased = new_vm(store, arms=4)
    ended(store, leased, failed("shutdown_timeout"))
    with store.write() as connection:
        cells.set_restored(connection, leased.vm.id, leased.token, RestoreOutcome.RESTORED)
    assert why_no_more(context_of(store, leased)) is None

    ended(store, leased, failed("account_refused"))
    assert why_no_more(context_of(store, leased))
    with store.write() as connection:
        token = leases.raise_token(connection, leased.vm.vm_key, leased.run.id)
    assert why_no_more(context_of(store, replace(leased, token=token))) is None


def test_a_run_that_was_asked_to_stop_claims_nothing(store: Store) -> None:
    """Whatever is left."""
    leased = new_vm(store, arms=1)
    with store.write() as connection:
        runs.request_stop(connection, leased.run.id, StopRequest.CELL)

    assert claim_next_cell(context_of(store, leased)) == NoCell("the run was asked to stop")


def test_a_claim_ends_the_attempt_of_a_process_that_died(store: Store) -> None:
    """One play works on a VM at a time. After the last cell there is none."""
    leased = new_vm(store, arms=1)
    first = claim(store, leased)

    again = claim_next_cell(context_of(store, leased))

    assert isinstance(again, Claim)
    assert (again.cell_id, again.number) == (first.cell_id, 2)
    with store.read() as connection:
        assert attempts.get_attempt(connection, first.id).outcome is Outcome.INTERRUPTED
    with store.write() as connection:
        attempts.finish(connection, again.id, leased.token, Outcome.VALID)
    assert claim_next_cell(context_of(store, leased)) == NoCell("every cell has ended")


def test_an_outdated_play_claims_nothing(store: Store) -> None:
    """Its token was raised."""
    leased = new_vm(store, arms=1)
    with store.write() as connection:
        leases.raise_token(connection, leased.vm.vm_key, leased.run.id)

    with pytest.raises(LeaseLost):
        claim_next_cell(context_of(store, leased))


@pytest.mark.parametrize("alive", [True, False])
def test_a_neighbours_measurement_is_waited_for_while_somebody_will_end_it(store: Store, alive: bool) -> None:
    """Another run's VM on the same host: of a dead run it would last for ever."""
    leased, other = new_vm(store, arms=1), new_vm(store, new_run(store), key="vc/2", name="sql17", arms=1)
    claim(store, other)
    if alive:
        with store.write() as connection:
            runs.touch_supervisor(connection, other.run, pid=1, host="elsewhere")
        found = claim_next_cell(context_of(store, leased))
        assert isinstance(found, NoCell)
        assert not found.final
    else:
        with pytest.raises(VmHeld):
            claim_next_cell(context_of(store, leased))


@pytest.mark.parametrize(
    ("end", "person"),
    [
        (VALID, False),
        (TOOLS, False),
        (INTERRUPTED, False),
        (failed("account_refused"), True),
        (failed("shutdown_timeout"), True),
    ],
)
def test_a_person_is_asked_for_where_a_further_attempt_makes_no_sense(
    store: Store, end: End, person: bool
) -> None:
    """An interrupted attempt did not end; a valid one needs nobody."""
    leased = new_vm(store, arms=1)
    ended(store, leased, end)
    with store.read() as connection:
        (line,) = attempts.lines_of_run(connection, leased.run.id)

    assert needs_a_person(line) is person


PRECISE, WIDE = StopDecision(True, "precise", 8, 0.004), StopDecision(False, "not yet", 8, 0.02)
LEAVE, STAY = DecidedLook(8, {"4x4": "slower"}, ()), DecidedLook(8, {}, ("4x4",))


@pytest.mark.parametrize(
    ("hours", "precision", "decided", "rule"),
    [
        (1.5, None, None, None),
        (2.5, None, None, "max_hours"),
        (1.5, WIDE, None, None),
        (2.5, WIDE, None, "max_hours"),
        (2.5, PRECISE, None, "precise"),
        (1.5, StopDecision(True, "cap", 24, None), None, None),
        (2.5, None, LEAVE, "decided"),
        (1.5, None, STAY, None),
        (2.5, None, STAY, "max_hours"),
    ],
)
def test_the_declared_rule_ends_a_run(
    hours: float, precision: StopDecision | None, decided: DecidedLook | None, rule: str | None
) -> None:
    """Of two hours at most; what its intervals say comes first."""
    text = study_text().replace("design: {", "design: {max_hours: 2, ")

    reason = stop_reason(parse_study(text, "s"), 1.0, hours, precision, decided)

    assert (reason and reason.partition(":")[0]) == rule


@pytest.mark.parametrize(
    ("hours", "measured", "ends"),
    [(1e-9, 2, False), (1e-9, 4, True), (1e-9, 5, False), (1000, 4, False)],
    ids=["first blocks", "between blocks", "in a block", "hours are left"],
)
def test_the_rule_is_asked_only_between_two_blocks(
    store: Store, hours: float, measured: int, ends: bool
) -> None:
    """Where it ends the run, the cells that are left are given up."""
    leased = new_vm(store, arms=2, blocks=3)
    ended(store, leased, *[VALID] * measured)
    context = context_of(store, leased)
    design = context.study.design.model_copy(update={"max_hours": hours})
    study = context.study.model_copy(update={"design": design})

    found = claim_next_cell(replace(context, study=study))

    with store.read() as connection:
        left = [cell.state for cell in cells.cells_of_run(connection, leased.run.id)]
    assert isinstance(found, NoCell) is ends
    assert left.count(CellState.SKIPPED) == ends * 2
