"""What a supervisor does each second while a play runs."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import Any

import pytest

from tests.report.build import study_text
from tests.store.build import new_vm
from tests.support.stores import new_store
from vnuma.domain.study.study import AllowedHours
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import Target
from vnuma.engine.lease.supervision import claim_supervision
from vnuma.engine.run import oversight
from vnuma.engine.run.oversight import AWAY, Oversight, StopRequests, SupervisedRun, stop_signals
from vnuma.engine.run.progress import Progress
from vnuma.errors import Interrupted, LeaseLost, NotAtBaseline, StoreAway, StoreError
from vnuma.store import runs
from vnuma.store.rows import StopRequest
from vnuma.store.tables import utc_now

NEVER = AllowedHours(time_zone="UTC", windows=("Mon-Sun 00:00-24:00",), restore_s=1e7)
"""Hours that leave only the time to restore."""


class Seen(Oversight):
    """Oversight of a run of one VM, with what it showed."""

    def __init__(self, folder: Path, hours: AllowedHours | None = None, site: str | None = None) -> None:
        self.shown: list[Progress] = []
        folder.mkdir(exist_ok=True)
        store = new_store(folder / "vnuma.db")
        with store.write() as connection:
            saved = runs.save_study(connection, "quick", study_text(vms="sql-a"))
            run = runs.create_run(connection, saved, seed=7)
        new_vm(store, run, key="vc/1", name="sql-a", arms=1)
        study = parse_study(study_text(vms="sql-a"), "study").model_copy(update={"allowed_hours": hours})
        claim_supervision(store, run)
        targets = {"sql-a": Target(name="sql-a")}
        work = SupervisedRun(store, "sqlite:///none", run, study, targets, Inventory(folder / "hosts.yml"))
        super().__init__(work, self.shown.append, StopRequests())

    @property
    def stop_requested(self) -> StopRequest | None:
        """As it is stored."""
        with self.work.store.read() as connection:
            return runs.get_run(connection, self.work.run.name).stop_requested


@pytest.mark.parametrize(
    ("count", "hours", "stopped", "ends"),
    [
        (0, None, None, False),
        (1, None, StopRequest.NOW, False),
        (2, None, StopRequest.NOW, True),
        (0, NEVER, StopRequest.NOW, False),
    ],
    ids=["nothing", "asked once", "asked twice", "hours are over"],
)
def test_a_stop_is_passed_on_and_the_second_ends_the_play(
    tmp_path: Path, count: int, hours: AllowedHours | None, stopped: StopRequest | None, ends: bool
) -> None:
    """The play's steps hear of it by the store."""
    over = Seen(tmp_path, hours)
    over.asked.count = count

    assert over.tick() is ends
    assert (over.stop_requested, len(over.shown), over.asked.broken) == (stopped, 1, None)


def test_a_run_that_another_process_took_and_a_bug_end_the_play(tmp_path: Path) -> None:
    """With that error, whatever the play itself ends with: the runner would leave it alive."""
    over, buggy = Seen(tmp_path / "a"), Seen(tmp_path / "b")
    with over.work.store.write() as connection:
        runs.touch_supervisor(connection, over.work.run, pid=1, host="elsewhere")

    def broken(_: Progress) -> None:
        raise ZeroDivisionError

    buggy.watch = broken

    assert (over.tick(), buggy.tick()) == (True, True)
    assert isinstance(over.asked.broken, LeaseLost)
    assert isinstance(buggy.asked.broken, ZeroDivisionError)


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> StoreAway:
    """A store that is away, whenever a heartbeat is sent."""
    error = StoreAway("The store is away.")

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(oversight, "require_supervision", refuse)
    return error


def test_a_store_that_is_away_is_waited_for_until_its_time_is_over(tmp_path: Path, away: StoreAway) -> None:
    """What was last seen is shown with the reason; a second request does not wait."""
    over = Seen(tmp_path)
    over.look()

    assert not over.tick()
    (shown,) = over.shown
    assert [vm.waits_for is not None and away.what in vm.waits_for for vm in shown.vms] == [True]
    over.asked.count = 2
    assert over.tick()
    over.asked.count = 0
    over._away_until = utc_now() - timedelta(seconds=1)
    assert over.tick()
    assert over.asked.broken is away


def test_the_time_for_a_store_begins_anew_when_it_was_there(
    tmp_path: Path, away: StoreAway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each absence has its own limit."""
    over = Seen(tmp_path)
    over.tick()
    first = over._away_until
    assert first is not None
    assert first > utc_now() + AWAY - timedelta(minutes=1)

    monkeypatch.undo()
    assert not over.tick()
    assert over._away_until is None


def test_a_connection_is_waited_for_and_a_stop_ends_the_wait(
    tmp_path: Path, away: StoreAway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two plays; with the error of the last try."""
    over, again = Seen(tmp_path), StoreAway("Still away.")
    ends: list[Exception | None] = [again, None]

    class Opened:
        def disconnect(self) -> None:
            """There it is."""

    def opened(*_: object, **__: object) -> Opened:
        error = ends.pop(0)
        if error:
            raise error
        return Opened()

    monkeypatch.setattr(oversight, "sleep", lambda _: None)
    monkeypatch.setattr(oversight, "open_store", opened)
    over.await_store(away)
    assert (ends, over._away_until) == ([], None)

    over.asked.count = 1
    with pytest.raises(StoreAway):
        over.await_store(away)


def test_while_other_sites_work_their_problems_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until none is waited for; what breaks meanwhile is one more problem. A site waits for no other."""
    over, left = Seen(tmp_path), [["site-b"], []]
    over.asked.broken = StoreError("of the play")
    assert over.follow() == []
    assert over.asked.broken is None
    monkeypatch.setattr(oversight, "sleep", lambda _: None)
    monkeypatch.setattr(oversight, "waited_for", lambda *_: left.pop(0))
    assert over.follow() == []
    assert left == []

    def broken(*_: object) -> list[str]:
        raise StoreError("unreadable")

    monkeypatch.setattr(oversight, "waited_for", broken)
    assert [str(problem) for problem in over.follow()] == ["unreadable"]


def test_only_the_main_thread_shows_that_the_store_is_away(tmp_path: Path) -> None:
    """What a heartbeat's thread meets, it would show at the same time."""
    over, error = Seen(tmp_path), StoreAway("The store is away.")
    over.look()

    other = threading.Thread(target=over.show_store_away, args=(error,))
    other.start()
    other.join()
    assert over.shown == []
    over.show_store_away(error)
    assert len(over.shown) == 1


def test_progress_is_not_read_before_it_is_due(tmp_path: Path) -> None:
    """Reading that of many VMs must not take all the time; a site waits for no other."""
    over = Seen(tmp_path)
    over._shown_next = inf

    assert not over.tick()
    assert over.shown == []
    over.work = replace(over.work, run=replace(over.work.run, site="site-b"))
    assert over.follow() == []


class _Run:
    """What `stop_signals` needs of a run."""

    name = "quick.1"
    site = None


RUN: Any = _Run()


@pytest.fixture(autouse=True)
def no_bounce(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Requests right after one another count, and nothing ends the tests' process later."""
    monkeypatch.setattr(oversight, "_BOUNCE_S", 0.0)
    monkeypatch.setattr(oversight, "_LEAVE_S", 600.0)
    yield
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_service_manager_that_asks_often_never_leaves_the_vms(number: signal.Signals) -> None:
    """It stops at once after two requests; further ones change nothing."""
    with stop_signals(RUN, ["sql16"]) as asked:
        for _ in range(5):
            signal.raise_signal(number)

    assert asked.count == 2


@pytest.mark.parametrize(("names", "raised"), [(["sql16"], NotAtBaseline), ([], Interrupted)])
def test_the_third_ctrl_c_leaves_the_vms(names: list[str], raised: type[Exception]) -> None:
    """Exit code 7; where all are at other sites, none is said to be away from its baseline: 130."""
    requests = (signal.SIGTERM, signal.SIGINT, signal.SIGINT)

    with pytest.raises(raised), stop_signals(RUN, names):
        deque(map(signal.raise_signal, requests))
