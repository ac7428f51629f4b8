"""How a restore ends, given what it met; and which VMs are restored after a process died."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from tests.report.build import study_text
from tests.store.build import Leased, new_run, new_vm
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.context import VmContext
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import Target
from vnuma.engine.restore import restore
from vnuma.engine.restore import restore_leftovers as leftovers
from vnuma.engine.restore.restore import restore_abandoned, restore_target
from vnuma.engine.restore.restore_leftovers import (
    RestoreReport,
    RestoreRequest,
    leftover_vms,
    restore_after_death,
    restore_leftovers,
    show_leftovers,
)
from vnuma.engine.restore.restore_vm import Choice, Restored
from vnuma.errors import (
    AccountRefused,
    EnvironmentProblem,
    InputError,
    LeaseLost,
    NotAtBaseline,
    RestoreConflict,
    StoreAway,
    VCenterUnreachable,
    VmHeld,
    VnumaError,
)
from vnuma.store import leases, runs, sites
from vnuma.store.open import Store
from vnuma.store.rows import RestoreOutcome, Run


def run_of(store: Store, vms: str) -> Run:
    with store.write() as connection:
        return runs.create_run(connection, runs.save_study(connection, "quick", study_text(vms=vms)), seed=7)


@pytest.fixture
def box(store: Store) -> Leased:
    """A machine that a run has taken over."""
    return new_vm(store, run_of(store, "box"), key="linux/box", name="box")


def context_of(store: Store, leased: Leased) -> VmContext:
    study = parse_study(study_text(vms="box"), "study")
    return VmContext(store, leased.run, study, leased.vm, Target(name=leased.vm.name))


def stored(store: Store, leased: Leased) -> tuple[RestoreOutcome | None, bool]:
    """The outcome, and whether the run still holds the VM."""
    with store.read() as connection:
        vm = leases.get_vm(connection, leased.vm.id)
        return vm.restore_outcome, leases.token_of(connection, vm.vm_key, leased.run.id) is not None


@pytest.mark.parametrize(
    ("met", "choice", "raised", "outcome"),
    [
        (Restored("box", 1, 1), "refuse", None, RestoreOutcome.RESTORED),
        (Restored("box", 1, 1), "baseline", None, RestoreOutcome.RESTORED),
        (Restored("box", 1, 1), "theirs", None, RestoreOutcome.THEIRS),
        (Restored("box", lab_ended=True), "refuse", None, RestoreOutcome.UNCHANGED),
        (LeaseLost("taken"), "refuse", LeaseLost, None),
        (RestoreConflict("theirs"), "refuse", RestoreConflict, RestoreOutcome.CONFLICT),
        (NotAtBaseline("differs"), "refuse", NotAtBaseline, RestoreOutcome.FAILED),
        (VCenterUnreachable("gone"), "refuse", NotAtBaseline, RestoreOutcome.UNREACHABLE),
        (EnvironmentProblem("no network"), "refuse", NotAtBaseline, RestoreOutcome.FAILED),
        (OSError(24, "Too many open files"), "refuse", NotAtBaseline, RestoreOutcome.FAILED),
        (ZeroDivisionError("a bug"), "refuse", NotAtBaseline, RestoreOutcome.FAILED),
    ],
)
def test_what_a_restore_meets_is_its_outcome(
    store: Store,
    box: Leased,
    monkeypatch: pytest.MonkeyPatch,
    met: Restored | Exception,
    choice: Choice,
    raised: type[VnumaError] | None,
    outcome: RestoreOutcome | None,
) -> None:
    """The lease is released with a restored VM alone; whatever else happens, it stays protected."""

    def both(*_: object) -> Restored:
        if isinstance(met, Exception):
            raise met
        return met

    monkeypatch.setattr(restore, "_restore_both", both)

    if raised is None:
        assert restore_target(context_of(store, box), choice) is met
    else:
        with pytest.raises(raised) as told:
            restore_target(context_of(store, box), choice)
        assert type(told.value) is raised
        assert getattr(told.value, "bug", None) is (met if isinstance(met, ZeroDivisionError) else None)

    assert stored(store, box) == (outcome, raised is not None)
    with store.read() as connection:
        vm, lease = leases.get_vm(connection, box.vm.id), leases.get_lease(connection, box.vm.vm_key)
    failed = outcome is not None and raised is not None
    assert (lease is not None and restore_abandoned(vm, lease)) is failed


@pytest.mark.parametrize("where", ["_advance_token", "_give_up"])
def test_a_bug_before_or_after_a_restore_is_that_vms_alone(
    store: Store, box: Leased, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """It is named as possibly changed, with the bug, and stays protected."""

    def unforeseen(*_: object) -> None:
        raise AttributeError("nobody foresaw this")

    monkeypatch.setattr(restore, "_restore_both", lambda *_: Restored("box", 1, 1))
    monkeypatch.setattr(restore, where, unforeseen)

    with pytest.raises(NotAtBaseline) as told:
        restore_target(context_of(store, box))

    assert isinstance(told.value.bug, AttributeError)
    assert stored(store, box)[1]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_restore_is_repeated_while_the_stores_server_restarts(
    store: Store, box: Leased, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Three times at most: the VM is restored, or named with exit code 7."""
    left = [StoreAway("restarting") for _ in range(times)]

    def both(*_: object) -> Restored:
        if left:
            raise left.pop()
        return Restored("box", 1, 1)

    monkeypatch.setattr(restore, "_restore_both", both)

    if times < 3:
        restore_target(context_of(store, box))
    else:
        with pytest.raises(NotAtBaseline):
            restore_target(context_of(store, box))
    assert stored(store, box)[1] is (times == 3)


def test_a_restore_may_write_while_no_more_files_can_be_opened(
    store: Store, box: Leased, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease is checked by the connection that it has: a VM that it shut down is powered on."""

    def both(held: VmContext, *_: object) -> Restored:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = os.open(os.devnull, os.O_RDONLY)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            held.fence()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return Restored("box", 1, 1)

    monkeypatch.setattr(restore, "_restore_both", both)

    restore_target(context_of(store, box))

    assert stored(store, box) == (RestoreOutcome.RESTORED, False)


def test_a_vm_that_another_run_has_taken_is_not_restored(store: Store, box: Leased) -> None:
    """Its lease is not raised: that run goes on."""
    other = run_of(store, "box")
    with store.write() as connection:
        leases.release_lease(connection, box.vm.vm_key, box.token)
        leases.take_lease(connection, box.vm.vm_key, other.id, "ann@site")

    with pytest.raises(VmHeld):
        restore_target(context_of(store, box))
    with store.read() as connection:
        assert leases.token_of(connection, box.vm.vm_key, other.id) is not None


@pytest.fixture
def dead(store: Store) -> Run:
    """A run whose process died; two of its VMs are here, one is at a site."""
    run = run_of(store, "a, b, c")
    for name, site in (("a", None), ("b", None), ("c", "site-c")):
        new_vm(store, run, key=f"linux/{name}", name=name, site=site)
    return run


@pytest.mark.parametrize(
    ("names", "site", "alive", "restored"),
    [
        ("ab", None, False, "ab"),
        ("a", None, False, "a"),
        ("abc", None, False, "ab"),
        ("abc", "site-c", False, "c"),
        ("ab", None, True, ""),
    ],
    ids=["both", "one of them", "not a site's", "the site's", "in use"],
)
def test_a_new_run_restores_what_a_dead_one_left_of_its_vms(
    store: Store,
    dead: Run,
    monkeypatch: pytest.MonkeyPatch,
    names: str,
    site: str | None,
    alive: bool,
    restored: str,
) -> None:
    """Not what a living run works on, nor VMs of another site."""
    if alive:
        with store.write() as connection:
            runs.touch_supervisor(connection, dead, pid=1, host="elsewhere")
    monkeypatch.setattr(leftovers, "restore_dead", lambda context: Restored(context.vm.name, 1, 1))

    said = restore_after_death(
        store, {name: Target(name=name) for name in names}, Inventory(Path("hosts")), site
    )

    assert len(said) == len(restored)
    assert all(name in words for name, words in zip(restored, said, strict=True))


def test_every_vm_is_tried_before_one_keeps_a_new_run_from_starting(
    store: Store, dead: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that is away is named."""
    tried: list[str] = []

    def fails(context: VmContext) -> Restored:
        tried.append(context.vm.name)
        raise NotAtBaseline(f"{context.vm.name} is away.")

    monkeypatch.setattr(leftovers, "restore_dead", fails)

    with pytest.raises(NotAtBaseline) as told:
        restore_after_death(store, {name: Target(name=name) for name in "ab"}, Inventory(Path("hosts")))

    assert tried == ["a", "b"]
    assert all(f"{name} is away." in told.value.what for name in "ab")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (RestoreRequest(), "abc"),
        (RestoreRequest(["b"]), "b"),
        (RestoreRequest(site="site-c"), "c"),
        (RestoreRequest(run="quick.1"), "abc"),
        (RestoreRequest(["z"]), None),
        (RestoreRequest(run="quick.9"), None),
    ],
)
def test_which_vms_a_person_asks_to_restore(
    store: Store, dead: Run, wanted: RestoreRequest, found: str | None
) -> None:
    """All that are left, or those named; an unknown name is refused."""
    if found is None:
        with pytest.raises(InputError):
            leftover_vms(store, wanted)
    else:
        assert "".join(vm.name for vm, _ in leftover_vms(store, wanted)) == found


def test_a_vm_in_use_is_shown_and_refused_only_if_it_is_named(store: Store, dead: Run) -> None:
    """A person who names it has to know why nothing happens."""
    with store.write() as connection:
        runs.touch_supervisor(connection, dead, pid=1, host="elsewhere")

    assert len(show_leftovers(store, RestoreRequest())) == 3
    with pytest.raises(VmHeld):
        show_leftovers(store, RestoreRequest(["a"]))


def test_without_the_store_a_vm_is_named(store: Store, box: Leased) -> None:
    """That it may be altered takes precedence over the store's own error."""
    (store.place.path or Path()).unlink()

    with pytest.raises(NotAtBaseline):
        restore_target(context_of(store, box))


@pytest.fixture
def left(store: Store) -> Store:
    """A run whose process at site-b died, and left a VM of the name that the controller's has too."""
    run = new_run(store)
    with store.write() as connection:
        sites.add_sites(connection, run.id, ["site-b"])
    new_vm(store, run, key="vc-b/1", name="sql-b", site="site-b")
    return store


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        (RestoreRequest(), True),
        (RestoreRequest(run="quick.1"), True),
        (RestoreRequest(site="site-c"), False),
    ],
    ids=["everything", "its run", "another site"],
)
def test_a_vm_of_a_site_is_restored_there(left: Store, wanted: RestoreRequest, named: bool) -> None:
    """The controller says which site may have a changed VM; another site has nothing to do with it."""
    report = restore_leftovers(left, wanted)

    told = [problem.what for problem in report.problems if isinstance(problem, NotAtBaseline)]
    assert [("sql-b" in what, "site-b" in what) for what in told] == [(True, True)] * named
    assert len(show_leftovers(left, wanted)) == named
    assert report.done == []


def test_one_cause_is_reported_once() -> None:
    """A wrong password fails every VM with the same words; the error that decides the exit code is first."""
    wrong = [AccountRefused("vc1 does not accept the password.", fix="Check it.") for _ in range(3)]
    left = NotAtBaseline("sql16 is not at its baseline.", fix="vnuma restore sql16")
    other = AccountRefused("vc2 does not accept the password.", fix="Check it.")

    assert RestoreReport(problems=[*wrong]).ranked == [wrong[0]]
    assert RestoreReport(problems=[wrong[0], other, wrong[1]]).ranked == [wrong[0], other]
    assert RestoreReport(problems=[*wrong, left]).ranked == [left, wrong[0]]
