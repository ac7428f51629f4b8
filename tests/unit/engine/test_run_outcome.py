"""What a run's end tells when several things went wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from vnuma.engine.lease.hours import LONGER, Closed
from vnuma.engine.restore.restore import naming_all, worst_first
from vnuma.engine.run.progress import Progress, VmProgress
from vnuma.engine.run.run_outcome import End, RunOutcome, end_of, state_at_end
from vnuma.errors import CellsMissing, Interrupted, NotAtBaseline, RestoreConflict, StoreError
from vnuma.store.rows import AttemptLine, Outcome, Run, RunState, StopRequest


def test_every_vm_that_is_away_is_named() -> None:
    """One error is raised, and whoever reads it must know of each VM."""
    away = [NotAtBaseline("a is away.", fix="vnuma restore a"), RestoreConflict("b was changed.")]

    told = naming_all(away)

    assert isinstance(told, NotAtBaseline)
    assert [words for words in ("a is away.", "b was changed.") if words not in told.what] == []
    full = StoreError("full")  # exit code 7 takes precedence over every other
    assert worst_first([full, away[0]])[0] is worst_first([away[0], full])[0] is away[0]


RUN = Run(
    *(1, 1, "small.1", "small", 1, 1, RunState.STOPPED, None, None, "0", None, None),
    *(datetime(2026, 11, 25, tzinfo=UTC), None, None, None, None),
)


def of_cells(valid: int, done: int, total: int) -> Progress:
    """A run with one VM."""
    names = ("label", "block", "step", "since", "note", "left_s", "restore_words")
    vm = VmProgress(
        name="sql16",
        host="esx1",
        host_key=("vc", "esx1"),
        done=done,
        valid=valid,
        total=total,
        repeated=0,
        last=(),
        at_baseline=True,
        **dict.fromkeys(names),  # type: ignore[arg-type]
    )
    return Progress(RUN, (vm,), 1)


def asked(progress: Progress) -> Progress:
    """Somebody has asked it to stop."""
    return replace(progress, run=replace(progress.run, stop_requested=StopRequest.NOW))


def at_site(progress: Progress) -> Progress:
    """The part of a site."""
    return replace(progress, run=replace(progress.run, site="b"))


COMPLETE = RunOutcome(of_cells(4, 4, 4), (), (), interrupted=False)
PART = replace(COMPLETE, progress=of_cells(2, 2, 4))
LEFT = CellsMissing("2 of 4 cells.")
FULL = StoreError("full")


@pytest.mark.parametrize(
    ("outcome", "error", "end"),
    [
        (COMPLETE, None, "ended"),
        (PART, LEFT, "ended"),
        (replace(PART, interrupted=True), LEFT, "paused"),
        (replace(COMPLETE, interrupted=True), ValueError(), "ended"),
        (replace(COMPLETE, interrupted=True), None, "ended"),
        (replace(PART, closed=Closed("over")), LEFT, "hours_missed"),
        (replace(PART, closed=Closed("over"), problems=(FULL,)), FULL, "ended"),
        (replace(COMPLETE, interrupted=True), NotAtBaseline("away"), "not_at_baseline"),
        (None, NotAtBaseline("away"), "not_at_baseline"),
        (None, ValueError(), "ended"),
    ],
)
def test_people_are_told_the_gravest_end(
    outcome: RunOutcome | None, error: Exception | None, end: End
) -> None:
    """A VM that is away comes first; a stop after the last cell does not count."""
    assert end_of(outcome, error) == end


@pytest.mark.parametrize(
    ("progress", "problems", "state"),
    [
        (of_cells(4, 4, 4), [], RunState.FINISHED),
        (of_cells(3, 3, 4), [], RunState.STOPPED),
        (of_cells(3, 4, 4), [], RunState.FAILED),
        (of_cells(4, 4, 4), [FULL], RunState.FINISHED),
        (of_cells(4, 4, 4), [FULL, NotAtBaseline("away")], RunState.FAILED),
        (of_cells(4, 4, 4), [NotAtBaseline("away"), RestoreConflict("theirs")], RunState.CONFLICT),
    ],
)
def test_a_run_ends_in_one_state_whoever_supervised_it(
    progress: Progress, problems: list[Exception], state: RunState
) -> None:
    """Cells left: stopped, since --resume goes on; none left, and one without a result: failed."""
    assert state_at_end(progress, problems) == state


def lasting(progress: Progress) -> Progress:
    """Its VM gets no further cell until a person acts."""
    at = datetime(2026, 11, 25, tzinfo=UTC)
    line = AttemptLine(
        *(1, 1, 1, "a", 1, 1, None, None, at, at, Outcome.FAILED, "account_refused", "refused.\nGrant it.", 1)
    )
    return replace(progress, vms=tuple(replace(vm, lasting=line) for vm in progress.vms))


@pytest.mark.parametrize(
    ("outcome", "kind", "fix"),
    [
        (COMPLETE, None, ""),
        (replace(COMPLETE, interrupted=True), None, ""),
        (replace(COMPLETE, problems=(FULL, NotAtBaseline("away"))), NotAtBaseline, ""),
        (PART, CellsMissing, "vnuma run --resume small.1 uses the remaining attempts"),
        (replace(PART, progress=lasting(PART.progress)), CellsMissing, "Grant it. Then: vnuma run --resume"),
        (replace(PART, interrupted=True), Interrupted, "vnuma run --resume small.1"),
        (replace(PART, progress=asked(PART.progress)), CellsMissing, "vnuma run --resume small.1"),
        (replace(PART, closed=Closed("over")), CellsMissing, "vnuma run --resume small.1, within"),
        (replace(PART, closed=Closed("too short", for_good=True)), CellsMissing, LONGER),
        (replace(PART, progress=at_site(PART.progress)), CellsMissing, "vnuma run --resume small.1 --site b"),
    ],
)
def test_the_error_of_a_run_says_how_it_goes_on(
    outcome: RunOutcome, kind: type[Exception] | None, fix: str
) -> None:
    """Its class is the exit code; its fix the next command."""
    if kind is None:
        outcome.raise_for_outcome()
        return
    with pytest.raises(kind) as told:
        outcome.raise_for_outcome()

    assert fix in str(told.value)
    assert outcome.names_lasting_causes is (kind is CellsMissing and not (outcome.closed or outcome.stopped))
