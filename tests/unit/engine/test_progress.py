"""What progress counts as ended, and what it says of an attempt without a result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from tests.report.build import study_text
from tests.store.build import Leased, claim, new_vm
from vnuma.cli.progress import LineLog, block_lines
from vnuma.engine.lease.supervision import claim_supervision
from vnuma.engine.lease.vcenter_retry import RESTORING, VCenterRetry, report_retry, report_wait
from vnuma.engine.run.progress import Away, Progress, line_of, overview, progress_of, restoring
from vnuma.errors import ShutdownTimeout, VCenterUnreachable
from vnuma.store import attempts, leases, runs
from vnuma.store.open import Store, default_url, open_store
from vnuma.store.rows import Claim, Outcome, StopRequest

TRIES = 3
"""attempts_per_cell of a study that does not say."""


@dataclass(frozen=True)
class Going:
    """A run of two cells that is looked at between any two steps."""

    store: Store
    leased: Leased

    def seen(self) -> Progress:
        """What everybody who asks is shown."""
        with self.store.read() as connection:
            return progress_of(connection, self.leased.run.name)

    def claim(self) -> Claim:
        """Begin the next attempt."""
        return claim(self.store, self.leased, TRIES)

    def end(self, attempt: Claim, outcome: Outcome, why: str = "tools_timeout") -> None:
        """End it."""
        reason = None if outcome is Outcome.VALID else why
        with self.store.write() as connection:
            attempts.finish(connection, attempt.id, self.leased.token, outcome, reason=reason)


@pytest.fixture
def going(tmp_path: Path) -> Going:
    """A run of a real study, of which nothing was measured yet."""
    store = open_store(default_url(tmp_path))
    with store.write() as connection:
        run = runs.create_run(connection, runs.save_study(connection, "quick", study_text()), seed=7)
    return Going(store, new_vm(store, run, arms=2))


def test_between_two_cells_the_run_is_in_the_block_of_the_latest(going: Going) -> None:
    """A run that stops does not seem to be in its last block."""
    with going.store.write() as connection:
        run = runs.create_run(connection, runs.save_study(connection, "quick", study_text()), seed=7)
    several = Going(going.store, new_vm(going.store, run, key="vc/2", arms=1, blocks=3))
    blocks = []
    for _ in range(2):
        attempt = several.claim()
        blocks.append(several.seen().vms[0].block)
        several.end(attempt, Outcome.VALID)
        blocks.append(several.seen().vms[0].block)

    assert blocks == [0, 0, 1, 1]


def test_only_a_request_that_is_repeated_counts_as_a_retry(going: Going) -> None:
    """The words of a wait do not count as a retry."""
    vm = going.leased.vm
    patience = VCenterRetry(60)
    report_wait(going.store, vm, RESTORING, lambda _: None)("powering it on")
    assert going.seen().retries == 0

    report_retry(going.store, vm, RESTORING, patience)(1, VCenterUnreachable("It is away."), 1.0)

    assert going.seen().retries == 1


def test_a_resumed_run_does_not_show_the_restore_before_it(going: Going) -> None:
    """The words of a wait are shown while its restore has the VM's lease."""
    vm, steps = going.leased.vm, []
    for taken in range(2):
        if taken:
            with going.store.write() as connection:
                leases.take_lease(connection, vm.vm_key, going.leased.run.id, "ops@ctl1")
        else:
            report_wait(going.store, vm, RESTORING, lambda _: None)("powering it on")
        steps.append(going.seen().vms[0].step)

    assert steps == [f"{RESTORING}: powering it on", None]


End = tuple[Outcome, str]
FAILED, VALID = (Outcome.FAILED, "tools_timeout"), (Outcome.VALID, "")
LASTS, LATE = (Outcome.FAILED, "privilege_missing"), (Outcome.FAILED, ShutdownTimeout.reason)
STOPPED = (Outcome.INTERRUPTED, "stop_requested")


@pytest.mark.parametrize(
    ("ends", "done", "last", "lasts"),
    [
        ([FAILED], 0, "failed, tried again", False),
        ([FAILED, (Outcome.INVALID, "host_changed"), VALID], 1, "valid", False),
        ([FAILED] * TRIES, 1, "failed, given up", False),
        ([LATE], 0, "failed, waits for a person", False),  # another attempt would only repeat it
        ([STOPPED], 0, "interrupted", False),  # a run whose controller died owes the cell all its attempts
        ([LASTS] * TRIES, 0, "failed, waits for a person", True),  # however often a resumed run meets it
        ([LASTS] * TRIES + [VALID], 1, "valid", False),
    ],
)
def test_a_cell_has_ended_when_no_attempt_follows(
    going: Going, ends: list[End], done: int, last: str, lasts: bool
) -> None:
    """The count never goes back, and is not raised while an attempt is under way."""
    counts = []
    for outcome, why in ends:
        attempt = going.claim()
        counts.append(going.seen().done)
        going.end(attempt, outcome, why)
        counts.append(going.seen().done)

    (vm,) = going.seen().vms
    assert counts == [0] * (len(counts) - 1) + [done]
    assert vm.last[0] == ("arm0", last)
    assert (vm.lasting is not None) is lasts


def test_a_boot_that_a_person_stopped_is_no_note_to_that_person(going: Going) -> None:
    """Earlier problems are shown, and an end by allowed hours; nothing once the cell continues."""
    going.end(going.claim(), *FAILED)
    going.end(going.claim(), *STOPPED)
    by_hours = going.seen().vms[0].note
    with going.store.write() as connection:
        runs.request_stop(connection, going.leased.run.id, StopRequest.NOW)
    by_request = going.seen().vms[0].note
    going.end(going.claim(), *VALID)

    assert [note is not None for note in (by_hours, by_request)] == [True, True]
    assert by_hours != by_request


def test_log_and_display_say_that_a_failed_cell_is_tried_again(
    going: Going, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both count the same cells, and the second attempt at the cell does not take a line back."""
    log = LineLog()
    for outcome in (Outcome.FAILED, Outcome.VALID):
        attempt = going.claim()
        log.show(going.seen())
        going.end(attempt, outcome)
        log.show(going.seen())

    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert [[word for word in line if "/" in word] for line in lines] == [["0/2"], ["1/2"]]
    assert any(line.startswith("  1 of 2 ") for line in block_lines(going.seen()))


def test_a_vm_that_waits_for_its_neighbour_says_for_whom_and_since_when(
    going: Going, capsys: pytest.CaptureFixture[str]
) -> None:
    """Waiting must not look like a run that is dead; a run that is dead waits for nobody."""
    neighbour = new_vm(going.store, going.leased.run, key="vc/2", name="sql-b", arms=1)
    going.claim()
    assert going.seen().vms[1].waits_for is None
    claim_supervision(going.store, going.leased.run)

    first, second = going.seen().vms

    assert second.name == neighbour.vm.name
    assert first.waits_for is None
    log = LineLog()
    log.show(going.seen())
    log.show(going.seen())
    assert capsys.readouterr().err.count("waiting vm=sql-b: sql16") == 1


@contextmanager
def asked(store: Store) -> Iterator[list[str]]:
    """Every statement that the store sends meanwhile."""
    sent: list[str] = []

    def note(_conn: object, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    event.listen(store._engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(store._engine, "before_cursor_execute", note)


def test_progress_of_many_vms_takes_no_more_queries_than_of_one(going: Going) -> None:
    """However many of them wait for another one."""
    claim_supervision(going.store, going.leased.run)
    going.claim()
    with asked(going.store) as of_one:
        going.seen()
    for number in range(2, 30):
        new_vm(going.store, going.leased.run, key=f"vc/{number}", name=f"vm{number}", arms=2)

    with asked(going.store) as of_many:
        assert sum(vm.waits_for is not None for vm in going.seen().vms) == 28

    assert len(of_many) == len(of_one)


AT_WORK: dict[str, Any] = {"label": "4x4", "step": "measuring"}
RULED = {"ended_by": "precise"}
RESTORED = {"restore_words": "restored\nin detail"}


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (AT_WORK | RULED, "4x4 measuring"),
        ({"waits_for": "sql17"} | RULED, "sql16 waits: sql17"),
        (RULED | RESTORED, "precise"),
        (RESTORED, "restored"),
        ({}, "not begun"),
    ],
)
def test_a_runs_line_has_the_latest_of_its_events(going: Going, state: dict[str, Any], event: str) -> None:
    """Work comes before waiting, and both before how it ended."""
    seen = going.seen()

    line = line_of(replace(seen, vms=tuple(replace(vm, **state) for vm in seen.vms)))

    assert line.event == event


@pytest.mark.parametrize(("done", "left_s"), [(2, 60.0), (1, None)])
def test_a_vm_that_is_restored_has_no_cell_under_way(going: Going, done: int, left_s: float | None) -> None:
    """Its time is known once every cell has ended; why a restore waits is not overwritten."""
    (vm,) = going.seen().vms

    shown = restoring(replace(vm, **AT_WORK, done=done, left_s=60.0))

    assert (shown.label, shown.left_s) == (None, left_s)
    waits = restoring(vm, "vCenter is away")
    assert restoring(waits) == waits != shown


@pytest.mark.parametrize("only", [None, "quick.1"])
def test_an_overview_has_runs_and_the_vms_that_are_away(going: Going, only: str | None) -> None:
    """Progress of the run that was asked for; without a store there is nothing yet."""
    seen = overview(going.store.place.url.render_as_string(hide_password=False), only)

    assert [line.run for line in seen.runs] == ["quick.1"]
    assert seen.not_at_baseline == (Away("sql16", "quick.1", in_use=False),)
    assert (seen.progress is not None) is (only is not None)
    assert overview(None).runs == ()
