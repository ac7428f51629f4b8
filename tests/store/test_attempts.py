"""Attempts and samples: what is kept, what is refused, and how it is read back."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, text

from tests.store.build import START, claim, new_vm, samples
from vnuma.errors import StoreError
from vnuma.store import attempts, cells, facts, leases, tables
from vnuma.store import samples as sample_rows
from vnuma.store.open import Store
from vnuma.store.rows import CellState, Outcome, Sample
from vnuma.store.tables import canonical_json


def test_what_an_attempt_was_and_saw_is_read_back(store: Store) -> None:
    """Intended, predicted, effective, change and step, with the cell's place."""
    leased = new_vm(store, arms=1)
    got = claim(store, leased)
    with store.write() as conn:
        attempts.save_plan(
            conn,
            got.id,
            leased.token,
            intended={"topology": "2x8"},
            change=[["numCoresPerSocket", 16, 8]],
            predicted={"nodes": 2, "confidence": "low"},
        )
        attempts.save_effective(conn, got.id, leased.token, {"nodes": None})
        attempts.set_step(conn, got.id, leased.token, "guest_ready")
    with store.read() as conn:
        (attempt,) = attempts.attempts_of_run(conn, leased.run.id)
    assert (attempt.intended, attempt.predicted) == (
        {"topology": "2x8"},
        {"nodes": 2, "confidence": "low"},
    )
    assert (attempt.effective, attempt.change) == ({"nodes": None}, [["numCoresPerSocket", 16, 8]])
    assert attempt.step == "guest_ready"
    assert (attempt.label, attempt.block, attempt.vm_id) == ("arm0", 0, leased.vm.id)
    assert attempt.step_at is not None
    assert attempt.step_at >= attempt.started_at


def test_lines_and_changes_say_what_order_and_restore_need_without_other_documents(store: Store) -> None:
    """Every attempt of the VM in order, with how it ended; and the changes that were written."""
    leased = new_vm(store, arms=1)
    first = claim(store, leased)
    with store.write() as conn:
        change = [{"setting": "numCPUs", "after": 8}]
        attempts.save_plan(conn, first.id, leased.token, intended=None, change=change, predicted=None)
        attempts.finish(conn, first.id, leased.token, Outcome.FAILED, reason="tools_timeout")
    second = claim(store, leased)

    with store.read() as conn:
        lines = attempts.lines_of_run(conn, leased.run.id, leased.vm.id)
        changes = attempts.changes_of_vm(conn, leased.vm.id)

    assert [(line.id, line.outcome, line.reason) for line in lines] == [
        (first.id, Outcome.FAILED, "tools_timeout"),
        (second.id, None, None),
    ]
    assert changes == ([{"setting": "numCPUs", "after": 8}],)


def test_the_scope_that_was_recorded_last_is_found(store: Store) -> None:
    """Of two scopes the later one; None before either, whatever else was recorded."""
    leased = new_vm(store, arms=1)
    with store.write() as conn:
        facts.add_vm_facts(conn, leased.vm.id, "host", {"name": "esx01"})
        assert facts.last_scope(conn, leased.vm.id, ("made", "dropped")) is None
        facts.add_vm_facts(conn, leased.vm.id, "made", {"rows": 1})
        facts.add_vm_facts(conn, leased.vm.id, "dropped", {"rows": 0})
        assert facts.last_scope(conn, leased.vm.id, ("made", "dropped")) == "dropped"


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Outcome.VALID, CellState.VALID),
        (Outcome.INVALID, CellState.FAILED),
        (Outcome.FAILED, CellState.FAILED),
        (Outcome.INTERRUPTED, CellState.PENDING),
    ],
)
def test_the_cell_follows_its_attempt(store: Store, outcome: Outcome, state: CellState) -> None:
    """Each outcome leads to the cell state that decides about the next attempt."""
    leased = new_vm(store, arms=1)
    got = claim(store, leased)
    reason = None if outcome is Outcome.VALID else "sql_timeout"
    with store.write() as conn:
        attempts.finish(conn, got.id, leased.token, outcome, reason=reason, detail="after 10 min")
    with store.read() as conn:
        (attempt,) = attempts.attempts_of_run(conn, leased.run.id)
        (cell,) = cells.cells_of_run(conn, leased.run.id)
    assert (attempt.outcome, attempt.reason, attempt.detail) == (outcome, reason, "after 10 min")
    assert attempt.ended_at is not None
    assert cell.state is state


def test_seconds_are_added_up_by_stage(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage is a step's first word; the steps of one stage count together, the last one up to the end."""
    leased = new_vm(store, arms=1)
    got = claim(store, leased)
    moments = iter([START + timedelta(seconds=second) for second in (0, 40, 41, 50, 52.5)])
    monkeypatch.setattr(attempts, "utc_now", lambda: next(moments))
    for step in ("power_on", "measure", "measure 500 x 500, client", "measure sentinel"):
        with store.write() as conn:
            attempts.set_step(conn, got.id, leased.token, step)
    with store.write() as conn:
        attempts.finish(conn, got.id, leased.token, Outcome.VALID)

    with store.read() as conn:
        (attempt,) = attempts.attempts_of_run(conn, leased.run.id)
    assert isinstance(attempt.timings, dict)
    assert (attempt.timings["power_on"], attempt.timings["measure"]) == (40.0, 12.5)


def test_an_outcome_without_a_result_needs_a_reason(store: Store) -> None:
    """Failed without a reason, and valid with one, are mistakes of the caller."""
    leased = new_vm(store, arms=1)
    got = claim(store, leased)
    for outcome, reason in ((Outcome.FAILED, None), (Outcome.VALID, "why")):
        with pytest.raises(ValueError, match="with a reason"), store.write() as conn:
            attempts.finish(conn, got.id, leased.token, outcome, reason=reason)


def test_nothing_is_added_to_an_ended_attempt(store: Store) -> None:
    """Samples, steps and a second outcome come too late."""
    leased = new_vm(store, arms=1)
    got = claim(store, leased)
    with store.write() as conn:
        attempts.finish(conn, got.id, leased.token, Outcome.VALID)
    writes: list[Callable[[Connection], None]] = [
        lambda conn: sample_rows.add_samples(conn, got.id, leased.token, samples(1)),
        lambda conn: attempts.set_step(conn, got.id, leased.token, "late"),
        lambda conn: attempts.finish(conn, got.id, leased.token, Outcome.FAILED, reason="late"),
    ]
    for write in writes:
        with pytest.raises(StoreError), store.write() as conn:
            write(conn)
    second = {"cell_id": got.cell_id, "number": 2, "token": 1, "started_at": START, "ended_at": START}
    with pytest.raises(StoreError), store.write() as conn:  # a second valid attempt at the cell
        conn.execute(insert(tables.attempt), second | {"outcome": "valid"})
    with store.read() as conn, pytest.raises(StoreError):
        attempts.get_attempt(conn, 99)


def test_evidence_that_comes_late_completes_an_ended_attempt_and_changes_nothing_else(store: Store) -> None:
    """It takes no token, since the attempt's own is outdated; the outcome stays; it is the VM's last fact."""
    leased = new_vm(store, arms=1)
    other = new_vm(store, leased.run, key="vc/2", name="sql17", host="esx02")
    got = claim(store, leased)
    with store.write() as conn:
        attempts.save_effective(conn, got.id, leased.token, {"log": None})
        facts.add_attempt_facts(conn, got.id, leased.token, {"log": {"owed": 1}})
        attempts.finish(conn, got.id, leased.token, Outcome.VALID)
        leases.raise_token(conn, "vc/1", leased.run.id)
        owed = facts.last_of_vm(conn, leased.run.id, "vc/1", "log")
    assert owed is not None
    assert (owed.key, owed.id) == ("owed", got.id)

    with store.write() as conn:
        attempts.amend_effective(conn, got.id, {"log": "late"})
        facts.add_late_facts(conn, got.id, "log", {"late": 2})

    with store.read() as conn:
        attempt = attempts.get_attempt(conn, got.id)
        last = facts.last_of_vm(conn, leased.run.id, "vc/1", "log")
        assert facts.last_of_vm(conn, leased.run.id, other.vm.vm_key, "log") is None
    assert (attempt.outcome, attempt.effective) == (Outcome.VALID, {"log": "late"})
    assert last is not None
    assert (last.key, last.value, last.vm_id) == ("late", 2, leased.vm.id)


def test_samples_come_back_as_they_were_measured(store: Store) -> None:
    """One by one: every value, in time order, with its place in the study, whichever attempt counts."""
    stranger = new_vm(store, key="vc/2", arms=1, host="vc/2")
    leased = new_vm(store, arms=1)
    failed = Sample(
        "cross_join", 2000, "rows", 4, False, START + timedelta(minutes=1), reason="connection_dropped"
    )
    written = [*samples(1, first=0, warmup=True), *samples(3), failed]
    theirs, first = claim(store, stranger), claim(store, leased)
    with store.write() as conn:
        sample_rows.add_samples(conn, theirs.id, stranger.token, samples(2))
        sample_rows.add_samples(conn, first.id, leased.token, written[2:])
        sample_rows.add_samples(conn, first.id, leased.token, written[:2])
        attempts.finish(conn, first.id, leased.token, Outcome.INTERRUPTED, reason="interrupted")
    second = claim(store, leased)
    with store.write() as conn:
        sample_rows.add_samples(conn, second.id, leased.token, samples(2))
        attempts.finish(conn, second.id, leased.token, Outcome.VALID)
    with store.read() as conn:
        stored = list(sample_rows.iter_samples(conn, leased.run.id))
        assert list(sample_rows.iter_samples(conn, leased.run.id)) == stored
    assert [item.sample for item in stored if item.attempt_id == first.id] == written
    assert {(item.vm, item.arm, item.label, item.block) for item in stored} == {("sql16", "arm0", "arm0", 0)}
    ends = [(item.attempt_id, item.attempt_outcome) for item in stored]
    assert sorted(ends) == [(first.id, Outcome.INTERRUPTED)] * 5 + [(second.id, Outcome.VALID)] * 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"elapsed_ms": None},
        {"reason": "both"},
        {"elapsed_ms": None, "outcome": "failed"},
        {"outcome": "failed"},
        {"elapsed_ms": -1.0},
        {"outcome": "guessed"},
    ],
)
def test_the_database_refuses_impossible_samples(store: Store, wrong: dict[str, object]) -> None:
    """Measured without a time, failed without a reason, both at once, a time below zero."""
    leased = new_vm(store, arms=1)
    got = claim(store, leased)
    row = {
        "attempt_id": got.id,
        "workload": "cross_join",
        "size": 2000,
        "form": "rows",
        "iteration": 1,
        "warmup": False,
        "outcome": "measured",
        "elapsed_ms": 1.0,
        "at": START,
    }
    with store.write() as conn:
        conn.execute(insert(tables.sample), row)
    with pytest.raises(StoreError), store.write() as conn:
        conn.execute(insert(tables.sample), {**row, "iteration": 2, **wrong})


def test_a_sample_is_written_once(store: Store) -> None:
    """The same iteration cannot be written again, and no statement changes one."""
    leased = new_vm(store, arms=1)
    got = claim(store, leased)

    def again(conn: Connection) -> None:
        sample_rows.add_samples(conn, got.id, leased.token, samples(1))

    with store.write() as conn:
        again(conn)
    with pytest.raises(StoreError), store.write() as conn:
        again(conn)
    with pytest.raises(StoreError), store.write() as conn:
        conn.execute(text("UPDATE sample SET elapsed_ms = 1"))


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"elapsed_ms": 1.0, "reason": "both"},
        {"elapsed_ms": math.nan},
        {"elapsed_ms": math.inf},
        {"elapsed_ms": 1.0, "cpu_ms": -1.0},
    ],
)
def test_impossible_samples_cannot_be_made(wrong: dict[str, float | str]) -> None:
    """Neither time nor reason, both, not a number, infinite, negative."""
    with pytest.raises(ValueError, match=r"elapsed_ms|milliseconds"):
        Sample(
            workload="cross_join",
            size=1,
            form="rows",
            iteration=1,
            warmup=False,
            at=START,
            **wrong,  # type: ignore[arg-type]
        )


def test_a_time_without_a_zone_is_refused(store: Store) -> None:
    """A naive time is a mistake of the caller, not a guess at a zone."""
    leased = new_vm(store, arms=1)
    got = claim(store, leased)
    naive = Sample("cross_join", 1, "rows", 1, False, START.replace(tzinfo=None), elapsed_ms=1.0)
    with pytest.raises(Exception, match="without a time zone"), store.write() as conn:
        sample_rows.add_samples(conn, got.id, leased.token, [naive])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(value=st.dictionaries(st.text(), JSON, max_size=5))
def test_equal_values_are_equal_json(value: dict[str, object]) -> None:
    """Canonical JSON does not depend on the order in which a mapping was filled."""
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)
