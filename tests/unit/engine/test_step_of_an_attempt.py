"""How a step of an attempt ends it, and what else a play's process decides of its run."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict

import pytest

from tests.report.build import study_text
from tests.store.build import Leased, claim, new_run, new_vm
from vnuma.domain.study.study import AllowedHours
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.target import Target
from vnuma.engine.actions import steps
from vnuma.engine.lease.attempt import attempt_of, step
from vnuma.engine.lease.supervision import (
    claim_supervision,
    release_dead_supervisor,
    require_supervision,
    tolerating_full_store,
)
from vnuma.engine.lease.vcenter_retry import report_step
from vnuma.engine.run.start import lease_token, settle, settle_away
from vnuma.errors import (
    EnvironmentProblem,
    HostChanged,
    InputError,
    Interrupted,
    LeaseLost,
    NotAtBaseline,
    RestoreConflict,
    ShutdownTimeout,
    StoreAway,
    StoreBusy,
    StoreUnwritable,
    VmHeld,
)
from vnuma.store import attempts, cells, leases, runs
from vnuma.store.open import Store
from vnuma.store.rows import Claim, Outcome, RestoreOutcome, Run, RunState, StopRequest


@pytest.fixture
def leased(store: Store) -> Leased:
    """A VM of a run with one cell."""
    return new_vm(store, new_run(store), arms=1)


def context_of(store: Store, leased: Leased, hours: AllowedHours | None = None) -> VmContext:
    study = parse_study(study_text(vms="sql16"), "study").model_copy(update={"allowed_hours": hours})
    return VmContext(store, leased.run, study, leased.vm, Target(name="sql16"), leased.token)


def stored_run(store: Store, leased: Leased) -> Run:
    with store.read() as connection:
        return runs.get_run(connection, leased.run.name)


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (None, None, None),
        (LeaseLost("taken"), None, None),
        (ShutdownTimeout("late"), Outcome.FAILED, "shutdown_timeout"),
        (HostChanged("moved"), Outcome.INVALID, "host_changed"),
        (Interrupted("stopped"), Outcome.INTERRUPTED, "stop_requested"),
        (StoreAway("away"), Outcome.INTERRUPTED, "store_away"),
        (StoreUnwritable("full"), Outcome.INTERRUPTED, "store_unwritable"),
        (EnvironmentProblem("no network"), Outcome.FAILED, "environment_problem"),
        (ZeroDivisionError("a bug"), Outcome.FAILED, "zero_division_error"),
    ],
)
def test_a_step_that_fails_ends_its_attempt_with_outcome_and_reason(
    store: Store, leased: Leased, error: Exception | None, outcome: Outcome | None, reason: str | None
) -> None:
    """Before the error goes on. Of a VM that another process has, nothing is written."""
    attempt = claim(store, leased)
    context = context_of(store, leased)

    with pytest.raises(type(error)) if error else nullcontext(), step(context, attempt, "measure"):
        if error:
            raise error

    with store.read() as connection:
        found = attempts.get_attempt(connection, attempt.id)
    assert (found.outcome, found.reason) == (outcome, reason)


def test_no_step_begins_when_only_the_time_to_restore_is_left(store: Store, leased: Leased) -> None:
    """The attempt is kept as interrupted."""
    hours = AllowedHours(time_zone="UTC", windows=("Mon-Sun 00:00-24:00",), restore_s=1e7)
    attempt, begun = claim(store, leased), []

    with pytest.raises(Interrupted), step(context_of(store, leased, hours), attempt, "measure"):
        begun.append(True)

    with store.read() as connection:
        assert attempts.get_attempt(connection, attempt.id).outcome is Outcome.INTERRUPTED
    assert begun == []


def test_a_claim_passes_through_a_play_as_json(store: Store, leased: Leased) -> None:
    """What is not one is refused, with the option's name."""
    attempt = claim(store, leased)

    assert attempt_of(asdict(attempt)) == attempt
    for wrong in ({}, asdict(attempt) | {"more": 1}):
        with pytest.raises(InputError):
            attempt_of(wrong)


def test_a_step_that_waits_shows_why_and_heeds_a_stop(store: Store, leased: Leased) -> None:
    """Its words are the step's; once a stop was asked for, the wait ends."""
    attempt: Claim = claim(store, leased)
    say = report_step(context_of(store, leased), attempt, "shutdown")

    say("the guest is late")
    with store.read() as connection:
        (line,) = attempts.lines_of_run(connection, leased.run.id)
    assert line.step == "shutdown: the guest is late"

    with store.write() as connection:
        runs.request_stop(connection, leased.run.id, StopRequest.NOW)
    with pytest.raises(Interrupted):
        say("the guest is late")


def test_only_a_dead_supervisor_is_released(store: Store, leased: Leased) -> None:
    """A living one keeps its run."""
    claim_supervision(store, leased.run, 1)
    with pytest.raises(VmHeld):
        release_dead_supervisor(store, leased.run)

    with store.write() as connection:
        runs.clear_supervisor(connection, leased.run)
    claim_supervision(store, leased.run)
    release_dead_supervisor(store, leased.run)
    assert stored_run(store, leased).supervisor_pid is None
    with pytest.raises(LeaseLost):  # a process that was frozen meanwhile finds its run taken
        require_supervision(store, leased.run)


def test_a_full_store_prevents_no_restore_and_a_busy_one_does() -> None:
    """A busy one can be written by somebody else, who may go on."""
    with tolerating_full_store():
        raise StoreUnwritable("full")
    with pytest.raises(StoreBusy), tolerating_full_store():
        raise StoreBusy("locked")


@pytest.mark.parametrize(
    ("why", "state"),
    [
        (NotAtBaseline("away"), RunState.FAILED),
        (RestoreConflict("theirs"), RunState.CONFLICT),
    ],
)
def test_a_play_by_hand_that_cannot_restore_leaves_the_run_to_a_person(
    store: Store, leased: Leased, why: NotAtBaseline, state: RunState
) -> None:
    """Its lease stays."""
    settle_away(store, leased.run, why)

    assert stored_run(store, leased).state is state
    assert lease_token(context_of(store, leased)) == leased.token


def test_a_play_that_lost_its_lease_drops_no_database(
    store: Store, leased: Leased, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has the VM by now: neither its database nor the VM is touched."""
    context, touched = context_of(store, leased), list[str]()
    with store.write() as connection:
        leases.raise_token(connection, leased.vm.vm_key, leased.run.id, "somebody")
    monkeypatch.setattr(steps, "supervisor_token", lambda _name: leased.token)
    monkeypatch.setattr(steps, "open_context", lambda *_given: context)
    for name in ("drop_planned", "drop_after_run", "restore_target"):
        monkeypatch.setattr(steps, name, lambda *_given, name=name: touched.append(name))

    with pytest.raises(LeaseLost):
        steps.restore(leased.run.name, context.target, "refuse", "always")

    assert touched == []


def test_a_play_by_hand_settles_the_run_with_its_last_vm(store: Store) -> None:
    """Not before: another VM may still be measured."""
    with store.write() as connection:
        saved = runs.save_study(connection, "quick", study_text(vms="sql16, sql17"))
        run = runs.create_run(connection, saved, seed=7)
    both = [new_vm(store, run), new_vm(store, run, key="vc/2", name="sql17")]
    states = []
    for one in both:
        with store.write() as connection:
            cells.set_restored(connection, one.vm.id, one.token, RestoreOutcome.RESTORED)
            leases.release_lease(connection, one.vm.vm_key, one.token)
        settle(store, run)
        states.append(stored_run(store, one).state)

    assert states == [RunState.PLANNED, RunState.FINISHED]
