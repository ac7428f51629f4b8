"""What a supervisor does next, whatever its plays and restores end with."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.report.build import study_text
from tests.store.build import Leased, claim, new_vm
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import Target
from vnuma.engine.lease.supervision import claim_supervision
from vnuma.engine.restore.restore_vm import Restored
from vnuma.engine.run import supervise
from vnuma.engine.run.oversight import Oversight, StopRequests, SupervisedRun
from vnuma.engine.run.progress import Progress
from vnuma.engine.run.supervise import MAX_FORKS, SPARE, Played, play_order, spare_descriptors
from vnuma.errors import (
    LeaseLost,
    NotAtBaseline,
    RestoreConflict,
    StoreAway,
    StoreError,
    StoreUnwritable,
    VCenterUnreachable,
    VmHeld,
)
from vnuma.store import attempts, cells, leases, runs, sites
from vnuma.store.open import Store, default_url, open_store
from vnuma.store.rows import Outcome, RestoreOutcome, Run, RunState, StopRequest, Vm

OK, BROKEN = Played(ok=True), Played()


@dataclass
class Site:
    """A run of two VMs with two cells each, and plays that are functions of this process."""

    store: Store
    run: Run
    leased: dict[str, Leased]
    plays: list[Callable[[], Played]] = field(default_factory=list)
    going: list[list[str]] = field(default_factory=list)
    """The VMs of each launch."""
    turns: list[int] = field(default_factory=list)
    """How many attempts each launch allows a VM."""

    @property
    def work(self) -> SupervisedRun:
        """What is supervised."""
        targets = {name: Target(name=name, vm=name, vcenter=None, sql=None) for name in self.leased}
        study = parse_study(study_text(vms="sql-a, sql-b"), "study.yml")
        return SupervisedRun(
            self.store, "sqlite:///none", self.run, study, targets, Inventory(Path("hosts.yml"))
        )

    def launch(
        self, _over: Oversight, going: Mapping[str, Target], tokens: dict[str, int], turns: int
    ) -> Played:
        """The next play; the last one is repeated."""
        self.going.append(sorted(going))
        self.turns.append(turns)
        tokens |= {name: self.leased[name].token for name in going}
        return self.plays[min(len(self.going), len(self.plays)) - 1]()

    def ends_cell(self, *names: str, reason: str | None = None) -> None:
        """Each of these VMs measures its next cell, or fails at it."""
        for name in names:
            one = claim(self.store, self.leased[name], most=3)
            outcome = Outcome.FAILED if reason else Outcome.VALID
            with self.store.write() as connection:
                attempts.finish(connection, one.id, one.token, outcome, reason=reason)

    def restored(self, *names: str, outcome: RestoreOutcome = RestoreOutcome.RESTORED) -> None:
        """A play's second half, or a person's `vnuma restore`."""
        with self.store.write() as connection:
            for name in names:
                one = self.leased[name]
                cells.set_restored(connection, one.vm.id, one.token, outcome)
                if outcome.settled:
                    leases.release_lease(connection, one.vm.vm_key, one.token)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Nothing is measured yet."""
    store = open_store(default_url(tmp_path))
    with store.write() as connection:
        study = runs.save_study(connection, "quick", study_text(vms="sql-a, sql-b"))
        run = runs.create_run(connection, study, seed=7)
    leased = {name: new_vm(store, run, key=f"vc/{name}", name=name, arms=2) for name in ("sql-a", "sql-b")}
    made = Site(store, run, leased)
    monkeypatch.setattr(supervise, "_launch", made.launch)
    monkeypatch.setattr(Oversight, "await_store", lambda _self, _error: None)
    return made


def launched(site: Site, *plays: Callable[[], Played], asked: int = 0) -> list[list[str]]:
    """The VMs of each launch that these plays lead to."""
    site.plays = list(plays)
    claim_supervision(site.store, site.run)
    supervise._launch_until_done(Oversight(site.work, lambda _: None, StopRequests(count=asked)), {})
    return site.going


BOTH, A, B = ["sql-a", "sql-b"], ["sql-a"], ["sql-b"]


@pytest.mark.parametrize("left", [[], ["sql-b"]])
def test_only_a_play_that_leaves_no_vm_is_the_last(site: Site, left: list[str]) -> None:
    """Its word is not taken for the VM's state. After a signal nothing is launched."""

    def first() -> Played:
        site.ends_cell(*BOTH)
        site.restored(*(name for name in BOTH if name not in left))
        return OK

    def second() -> Played:
        site.restored(*left)
        return OK

    assert launched(site, first, second) == [BOTH, BOTH][: 1 + len(left)]
    site.going.clear()
    assert launched(site, lambda: OK, asked=1) == []


def test_a_play_has_attempts_for_the_cells_left_half_as_many_retries_and_the_end(site: Site) -> None:
    """Those of the VM with the most cells left: two, two, and one."""

    def first() -> Played:
        site.ends_cell("sql-a")
        return BROKEN

    def second() -> Played:
        site.ends_cell("sql-b")
        return BROKEN

    launched(site, first, second, lambda: BROKEN)

    assert site.turns[:3] == [2 + 1 + 2, 2 + 1 + 2, 1 + 0 + 2]


def test_three_plays_without_a_further_cell_are_enough(site: Site) -> None:
    """A cell in between begins the count anew."""

    def one_cell() -> Played:
        site.ends_cell("sql-a")
        return BROKEN

    assert launched(site, lambda: BROKEN, lambda: BROKEN, one_cell, lambda: BROKEN) == [BOTH] * 6


@pytest.mark.parametrize("end", ["a stop", "a restore that failed"])
def test_what_needs_nobody_to_continue_ends_the_launching(site: Site, end: str) -> None:
    """Cells are left, and no further play is launched for them."""

    def play() -> Played:
        site.ends_cell("sql-a")
        if end == "a stop":
            with site.store.write() as connection:
                runs.request_stop(connection, site.run.id, StopRequest.NOW)
        else:
            site.restored("sql-a", outcome=RestoreOutcome.FAILED)
        return BROKEN

    assert launched(site, play) == [BOTH]


def test_a_vm_that_needs_a_person_is_left_out_of_later_plays(site: Site) -> None:
    """The other one continues; once neither can, nothing is launched. What an earlier run met may be over."""
    site.ends_cell("sql-a", reason="account_refused")

    def first() -> Played:
        site.ends_cell("sql-a", reason="account_refused")
        return BROKEN

    def second() -> Played:
        site.ends_cell("sql-b", reason="account_refused")
        return BROKEN

    assert launched(site, first, second) == [BOTH, B]


def test_a_vm_that_an_earlier_run_gave_up_is_tried_in_every_play(site: Site) -> None:
    """Its cause may be over, though the first play did not come to it."""
    site.ends_cell("sql-a", reason="account_refused")

    def first() -> Played:
        site.ends_cell("sql-b")
        return BROKEN

    def second() -> Played:
        site.ends_cell(*BOTH)
        site.restored(*BOTH)
        return OK

    assert launched(site, first, second) == [BOTH, BOTH]


def test_a_store_that_takes_no_writes_ends_the_run(site: Site) -> None:
    """A step could not store what it did: its error is the run's."""
    full = StoreUnwritable("full", fix="df -h")

    with pytest.raises(StoreUnwritable) as told:
        launched(site, lambda: Played(unstored=full))

    assert told.value is full


def test_a_store_that_is_away_is_waited_for_three_times(site: Site) -> None:
    """The third play that it ends is the last."""

    def away() -> Played:
        raise StoreAway("away", fix="wait")

    with pytest.raises(StoreAway):
        launched(site, away)
    assert site.going == [BOTH] * 3


class Restoring:
    """Restores that end as they are told, by the VM's name."""

    def __init__(self, ends: Mapping[str, Exception | None]) -> None:
        self.ends, self.asked = ends, list[str]()

    def __call__(self, context: VmContext, **_: object) -> Restored:
        """As `restore_target` is called."""
        self.asked.append(context.vm.name)
        if error := self.ends.get(context.vm.name):
            raise error
        return Restored(context.vm.name, 31, 31)


def restoring(monkeypatch: pytest.MonkeyPatch, **ends: Exception | None) -> Restoring:
    """These VMs' restores fail, each with its error."""
    made = Restoring({name.replace("_", "-"): error for name, error in ends.items()})
    monkeypatch.setattr(supervise, "restore_target", made)
    return made


def test_one_vm_that_cannot_be_restored_keeps_no_other_from_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are tried; the error is told, with nothing lost."""
    away = NotAtBaseline("sql-a is away.")
    made = restoring(monkeypatch, sql_a=away)

    restored, problems = supervise.restore_vms(site.work)

    assert made.asked == BOTH
    assert ([one.vm for one in restored], problems) == (B, [away])
    site.restored("sql-a")  # its lease is released: it is at its baseline, or somebody else's
    made.asked.clear()
    supervise.restore_vms(site.work)
    assert made.asked == B


def test_a_display_with_a_bug_prevents_no_restore(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every VM is restored, and the bug is reported once."""
    made, bug = restoring(monkeypatch), ZeroDivisionError("a bug")

    def show(_seen: Progress) -> None:
        raise bug

    restored, problems = supervise.restore_vms(site.work, show)

    assert made.asked == BOTH
    assert ([one.vm for one in restored], problems) == (BOTH, [bug])


def test_a_vm_that_was_restored_meanwhile_is_no_problem(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The play's own restore released its lease; one that somebody still holds is told."""
    lost = LeaseLost("taken", fix="vnuma status")

    def restore(context: VmContext, **_: object) -> Restored:
        if context.vm.name == "sql-a":
            site.restored("sql-a")
        raise lost

    monkeypatch.setattr(supervise, "restore_target", restore)

    assert supervise.restore_vms(site.work) == ([], [lost])


def test_without_the_store_every_vm_is_named(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows which are changed: exit code 7, with the store's fix and the command that restores."""
    made = restoring(monkeypatch)
    (site.store.place.path or Path()).unlink()

    restored, problems = supervise.restore_vms(site.work)

    assert (restored, made.asked) == ([], [])
    (lost,) = problems
    assert isinstance(lost, NotAtBaseline)
    assert all(name in lost.what for name in BOTH)
    assert str(lost.fix).endswith("vnuma restore --run quick.1")


@pytest.mark.parametrize(
    ("tokens", "given_up", "ours", "others"),
    [
        ({"sql-a": 1, "sql-b": 1}, (), BOTH, 0),
        ({"sql-a": 0, "sql-b": 1}, (), B, 1),
        ({"sql-a": 0, "sql-b": 1}, ("sql-a",), BOTH, 0),
        ({}, (), [], 2),
    ],
)
def test_a_process_that_lost_the_run_restores_only_what_nobody_else_holds(
    site: Site, tokens: dict[str, int], given_up: tuple[str, ...], ours: list[str], others: int
) -> None:
    """By the token that it had, or where whoever took the VM has given up; of the rest it says so."""
    held = {name: tokens[name] * self_.token for name, self_ in site.leased.items() if name in tokens}
    for name in given_up:
        one = site.leased[name]
        with site.store.write() as connection:
            failed = RestoreOutcome.FAILED
            cells.set_restored(connection, one.vm.id, one.token, failed, {"token": one.token})

    left, problems = supervise._still_ours(site.work, held, LeaseLost("taken", fix="vnuma status"))

    assert sorted(left) == ours
    assert [type(problem) for problem in problems] == [NotAtBaseline] * others


@pytest.mark.parametrize(
    ("play", "problem", "state"),
    [
        (None, None, RunState.FINISHED),
        (VCenterUnreachable("gone", fix="wait"), VCenterUnreachable, RunState.STOPPED),
        (ZeroDivisionError("a bug"), ZeroDivisionError, RunState.STOPPED),
        (RestoreConflict("sql-a was changed."), RestoreConflict, RunState.CONFLICT),
    ],
)
def test_whatever_ends_the_plays_the_vms_are_restored_and_the_run_has_its_state(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    play: Exception | None,
    problem: type[Exception] | None,
    state: RunState,
) -> None:
    """Afterwards nobody supervises it."""
    made = restoring(monkeypatch)

    def plays() -> Played:
        if play:
            raise play
        site.ends_cell(*BOTH)
        site.ends_cell(*BOTH)
        site.restored(*BOTH)
        return OK

    site.plays = [plays]
    ended = supervise.supervise(site.work, lambda _: None)

    assert [type(one) for one in ended.problems] == ([problem] if problem else [])
    assert made.asked == (BOTH if play else [])
    with site.store.read() as connection:
        after = runs.get_run(connection, site.run.name)
    assert (after.state, after.supervisor_pid) == (state, None)


def test_a_run_that_another_process_supervises_is_left_alone(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a play nor a restore."""
    made = restoring(monkeypatch)
    with site.store.write() as connection:
        runs.touch_supervisor(connection, site.run, pid=1, host="elsewhere")

    with pytest.raises(VmHeld):
        supervise.supervise(site.work, lambda _: None)

    assert (made.asked, site.going) == ([], [])


def test_a_process_that_lost_the_run_restores_no_vm_of_another(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was frozen, and its VMs were taken: each is named, none is touched."""
    made = restoring(monkeypatch)

    def play() -> Played:
        with site.store.write() as connection:
            for name in BOTH:
                leases.raise_token(connection, site.leased[name].vm.vm_key, site.run.id, "ops@ctl2")
        raise LeaseLost("taken", fix="vnuma status")

    site.plays = [play]
    ended = supervise.supervise(site.work, lambda _: None)

    assert made.asked == []
    assert [type(one) for one in ended.problems] == [NotAtBaseline, NotAtBaseline, LeaseLost]


def test_a_sites_part_ends_with_its_problems_and_leaves_the_run_its_state(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller, or the last process, settles the run."""
    restoring(monkeypatch)
    with site.store.write() as connection:
        sites.add_sites(connection, site.run.id, ["site-b"])
        part = runs.at_site(connection, site.run, "site-b")

    def play() -> Played:
        raise VCenterUnreachable("gone", fix="wait")

    site.plays = [play]
    supervise.supervise(replace(site.work, run=part), lambda _: None)

    with site.store.read() as connection:
        after = runs.get_run(connection, site.run.name)
        (end,) = [one.end for one in sites.sites_of_run(connection, after.id)]
    assert after.state is site.run.state
    assert [problem["kind"] for problem in end["problems"]] == ["VCenterUnreachable"]  # type: ignore[index]


FULL = {
    "error": "StoreUnwritable",
    "msg": "The store's disk is full: here.\n  Free some space.",
    "failed": True,
}
AWAY = {"error": "StoreAway", "msg": "The store here does not answer.", "failed": True}


def heard(*results: Mapping[str, Any] | None) -> StoreError | None:
    """The store's last error, after events with these results of tasks."""
    listener = Played()
    for result in results:
        listener.take({"event_data": {} if result is None else {"res": result}})
    return listener.unstored


@pytest.mark.parametrize(
    ("results", "kind", "fix"),
    [
        ((FULL,), StoreUnwritable, "Free some space."),
        ((AWAY, {"changed": False}), StoreAway, None),
        ((AWAY, {"changed": True}), type(None), None),
        (({"error": "SqlTimeout", "msg": "No answer."}, None), type(None), None),
    ],
)
def test_a_store_that_took_nothing_is_known_until_a_step_stored_again(
    results: tuple[Mapping[str, Any] | None, ...], kind: type, fix: str | None
) -> None:
    """With the step's own next step. Other failures of steps are the attempts' own."""
    error = heard(*results)

    assert type(error) is kind
    assert getattr(error, "fix", None) == fix


def test_the_end_of_a_plays_output_is_kept_for_its_error() -> None:
    """In memory, and no more than that: a restore must not need disk space."""
    listener = Played()

    kept = [listener.take({"stdout": line * 3000}) for line in "ab"]

    assert kept == [False, False]
    assert (len(listener.output), listener.output.count("b"), listener.output[-1]) == (4000, 3000, "\n")


def vm(name: str, host: str, vcenter: str = "v") -> Vm:
    """A VM of a run on a host of a vCenter."""
    return Vm(
        id=1,
        run_id=1,
        vm_key=f"{vcenter}/{name}",
        name=name,
        path=name,
        esxi_host=host,
        baseline=None,
        baseline_at=None,
        restored_at=None,
        restore_outcome=None,
        restore_detail=None,
    )


def test_each_host_gets_its_first_vm_before_any_gets_its_second() -> None:
    """However the inventory groups them, no host is idle while VMs of another wait for their turn."""
    rows = [vm("a1", "a"), vm("a2", "a"), vm("a3", "a"), vm("b1", "b"), vm("c1", "b", "other"), vm("b2", "b")]

    assert play_order(rows, together=False) == (["a1", "b1", "c1", "a2", "b2", "a3"], 6)


def test_no_more_wait_than_can_come_next() -> None:
    """Each waiting VM is a process: of twenty VMs on one host two are worked on."""
    rows = [vm(f"vm{number}", "a") for number in range(20)]

    assert play_order(rows, together=False)[1] == 2
    assert play_order(rows, together=True)[1] == 20


def test_memory_bounds_how_many_are_worked_on() -> None:
    """A thousand hosts do not make a thousand processes."""
    rows = [vm(f"vm{number}", f"esx{number}") for number in range(1000)]

    assert play_order(rows, together=False)[1] == MAX_FORKS


def test_descriptors_are_kept_free_for_a_restore_while_the_play_runs() -> None:
    """As many as name lookups, sessions and files of a restore may need; afterwards they are free."""
    before = os.dup(0)
    os.close(before)
    with spare_descriptors():
        meanwhile = os.dup(0)
        os.close(meanwhile)
    after = os.dup(0)
    os.close(after)

    assert meanwhile >= before + SPARE
    assert after == before
