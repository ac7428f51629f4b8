"""Claiming cells: order, retries, limits, one measurement at a time."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tests.store.build import Leased, claim, new_run, new_vm, samples
from vnuma.domain.study.order import PlannedCell
from vnuma.errors import StoreError
from vnuma.store import attempts, cells, leases
from vnuma.store import samples as sample_rows
from vnuma.store.open import Store
from vnuma.store.rows import Busy, CellState, Claim, Outcome


def claim_next(store: Store, leased: Leased, *, exclusive_host: bool = True) -> Claim | Busy | None:
    """Ask for the VM's next cell, two attempts each."""
    with store.write() as conn:
        return cells.claim_next(
            conn,
            leased.vm.id,
            leased.token,
            2,
            exclusive_host=exclusive_host,
        )


def finish(store: Store, leased: Leased, got: Claim, outcome: Outcome) -> None:
    """End the claimed attempt."""
    reason = None if outcome is Outcome.VALID else "tools_timeout"
    with store.write() as conn:
        attempts.finish(conn, got.id, leased.token, outcome, reason=reason, detail="5 min")


def test_cells_are_claimed_by_position_not_in_the_order_of_adding(store: Store) -> None:
    """The plan's random order is the order of measuring, until none is left."""
    leased = new_vm(store)
    with store.write() as conn:
        cells.add_cells(
            conn,
            leased.vm.id,
            [PlannedCell(place, 0, "a", label) for label, place in zip("xyz", (2, 0, 1), strict=True)],
        )
    order = []
    for _ in range(3):
        got = claim(store, leased)
        order.append((got.label, got.position, got.number))
        finish(store, leased, got, Outcome.VALID)
    assert order == [("y", 0, 1), ("z", 1, 1), ("x", 2, 1)]
    assert claim_next(store, leased) is None


def test_the_reference_arm_may_have_two_labels_in_a_block(store: Store) -> None:
    """A/A: the same arm twice in a block under two labels, but never one label twice."""
    leased = new_vm(store)
    with store.write() as conn:
        cells.add_cells(
            conn, leased.vm.id, [PlannedCell(0, 0, "1x16", "1x16"), PlannedCell(1, 0, "1x16", "1x16 again")]
        )
    with pytest.raises(StoreError), store.write() as conn:
        cells.add_cells(conn, leased.vm.id, [PlannedCell(2, 0, "1x16", "1x16")])


def test_an_interrupted_cell_is_tried_again_and_keeps_its_samples(store: Store) -> None:
    """The first attempt's samples stay as interrupted; the second attempt starts over."""
    leased = new_vm(store, arms=1)
    first = claim(store, leased)
    with store.write() as conn:
        sample_rows.add_samples(conn, first.id, leased.token, samples(3))
    with store.write() as conn:
        token = leases.raise_token(conn, "vc/1", leased.run.id)
        assert cells.interrupt_attempts(conn, leased.vm.id, token) == 1
    again = Leased(leased.run, leased.vm, token)
    second = claim(store, again)
    assert (second.cell_id, second.number, second.token) == (first.cell_id, 2, token)
    with store.read() as conn:
        ended = attempts.get_attempt(conn, first.id)
        assert ended.outcome is Outcome.INTERRUPTED
        assert len(list(sample_rows.iter_samples(conn, leased.run.id))) == 3


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.INVALID])
def test_a_cell_without_a_result_is_retried_up_to_the_limit(store: Store, outcome: Outcome) -> None:
    """It is tried again at once, in its place; after the last attempt the next cell follows."""
    leased = new_vm(store, arms=2)
    tried = []
    while isinstance(got := claim_next(store, leased), Claim):
        tried.append((got.position, got.number))
        finish(store, leased, got, outcome)
    assert tried == [(0, 1), (0, 2), (1, 1), (1, 2)]
    with store.read() as conn:
        assert [cell.state for cell in cells.cells_of_run(conn, leased.run.id)] == [CellState.FAILED] * 2


def test_a_vm_measures_one_cell_at_a_time(store: Store) -> None:
    """A second claim while an attempt is open gets who measures, and since when."""
    leased = new_vm(store, arms=2)
    got = claim(store, leased)
    busy = claim_next(store, leased, exclusive_host=False)
    assert isinstance(busy, Busy)
    assert (busy.vm_name, busy.run_name) == ("sql16", "quick.1")
    with store.read() as conn:
        assert busy.since == attempts.get_attempt(conn, got.id).started_at


def test_vms_of_one_host_take_turns_where_the_study_says_so(store: Store) -> None:
    """With `exclusive_host` another run's VM on the same ESXi host has to wait, on another host not."""
    measuring = new_vm(store, arms=1)
    got = claim(store, measuring)
    neighbour = new_vm(store, new_run(store, "fleet"), key="vc/2", name="sql-b", arms=1)
    elsewhere = new_vm(store, key="vc/3", name="sql-c", host="esx02", arms=1)
    busy = claim_next(store, neighbour)
    assert isinstance(busy, Busy)
    assert isinstance(claim_next(store, elsewhere), Claim)
    finish(store, measuring, got, Outcome.VALID)
    assert isinstance(claim_next(store, neighbour), Claim)
    namesake = new_vm(store, key="vc_2/1", name="sql-d", arms=1)  # another vCenter's esx01
    assert isinstance(claim_next(store, namesake), Claim)


def test_vms_of_one_run_measure_together_where_the_study_allows_it(store: Store) -> None:
    """Without `exclusive_host` the VM itself counts, and another run's VMs: those were promised quiet."""
    measuring = new_vm(store, arms=1)
    claim(store, measuring)
    neighbour = new_vm(store, measuring.run, key="vc/2", name="sql-b", arms=1)
    stranger = new_vm(store, key="vc/3", name="sql-c", arms=1)
    assert isinstance(claim_next(store, stranger, exclusive_host=False), Busy)
    assert isinstance(claim_next(store, neighbour, exclusive_host=False), Claim)


def test_skipped_cells_have_a_reason_and_are_not_claimed(store: Store) -> None:
    """Giving up a block leaves valid cells and other blocks alone, and says why for the others."""
    leased = new_vm(store, arms=2, blocks=2)
    finish(store, leased, claim(store, leased), Outcome.VALID)
    with store.write() as conn:
        assert cells.skip_cells(conn, leased.vm.id, leased.token, reason="max_hours", from_block=1) == 2
    with store.read() as conn:
        listed = cells.cells_of_run(conn, leased.run.id)
        by_vm = cells.cells_of_run(conn, leased.run.id, leased.vm.id)
    assert listed == by_vm
    assert [(cell.label, cell.state, cell.reason) for cell in listed] == [
        ("arm0", CellState.VALID, None),
        ("arm1", CellState.PENDING, None),
        ("arm0", CellState.SKIPPED, "max_hours"),
        ("arm1", CellState.SKIPPED, "max_hours"),
    ]
    with store.write() as conn:
        assert cells.skip_cells(conn, leased.vm.id, leased.token, reason="precise_enough") == 1
    assert claim_next(store, leased) is None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE cell SET state = 'claimed'",
        "UPDATE cell SET state = 'lost'",
        "UPDATE cell SET state = 'skipped'",
        "UPDATE cell SET reason = 'why'",
        "UPDATE cell SET vm_id = 99",
    ],
)
def test_the_database_refuses_impossible_cells(store: Store, statement: str) -> None:
    """Two claimed cells of a VM, an unknown state, a skip without a reason, an unknown VM."""
    new_vm(store, arms=2)
    with pytest.raises(StoreError), store.write() as conn:
        conn.execute(text(statement))


@pytest.mark.parametrize(
    ("past", "used_up"),
    [
        ([], False),
        (["timeout"], False),
        (["timeout", "timeout"], True),
        (["timeout", "account_refused"], False),
        (["account_refused", "account_refused", "account_refused", "timeout"], False),
        (["account_refused", "timeout", "timeout"], True),
        (["timeout", "interrupted"], False),
        (["interrupted"] * 5, False),  # a controller that died has not shown that the cell cannot be measured
        (["timeout", "valid"], False),
    ],
)
def test_a_cell_is_used_up_when_no_claim_takes_it_again(store: Store, past: list[str], used_up: bool) -> None:
    """By the attempts whose end may pass; what any attempt would only repeat uses up none."""
    leased = new_vm(store, arms=1)
    most = 2
    for reason in past:
        got = claim(store, leased, most)
        known = {"valid": Outcome.VALID, "interrupted": Outcome.INTERRUPTED}
        with store.write() as conn:
            outcome = known.get(reason, Outcome.FAILED)
            why = None if outcome is Outcome.VALID else reason
            attempts.finish(conn, got.id, leased.token, outcome, reason=why)
    with store.read() as conn:
        found = cells.used_up_cells(conn, leased.run.id, most)
        following = cells.peek_next(conn, leased.vm.id, most)
        valid = [cell for cell in cells.cells_of_run(conn, leased.run.id) if cell.state is CellState.VALID]

    assert bool(found) is used_up
    assert (following is None) is (used_up or len(valid) == 1)
