"""What a process decides of the parts of a run that other sites work on."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.report.build import study_text
from tests.store.build import Leased, claim, new_vm
from tests.support.away import target_away
from vnuma.domain.study.study_file import parse_study
from vnuma.engine.access.inventory import Inventory
from vnuma.engine.access.target import Target
from vnuma.engine.preflight.findings import Permit
from vnuma.engine.run.progress import progress_of
from vnuma.engine.run.sites import (
    GONE_AFTER,
    add_site,
    begin_site,
    end_of_part,
    open_sites,
    part_at_site,
    problems_of_sites,
    refuse_file,
    refuse_moved,
    settle_if_last,
    waited_for,
)
from vnuma.engine.run.start import StudyRequest
from vnuma.errors import (
    EnvironmentProblem,
    InputError,
    NotAtBaseline,
    RestoreConflict,
    VmHeld,
    VnumaError,
)
from vnuma.store import attempts, cells, leases, runs, sites, tables
from vnuma.store.open import Store
from vnuma.store.place import parse_place
from vnuma.store.rows import Outcome, RestoreOutcome, Run, RunState, StopRequest
from vnuma.store.tables import utc_now

SITE = "site-b"


@pytest.fixture
def run(store: Store) -> Run:
    """A run of one VM, which is at another site."""
    with store.write() as connection:
        saved = runs.save_study(connection, "quick", study_text(vms="sql-b"))
        run = runs.create_run(connection, saved, seed=7)
        sites.add_sites(connection, run.id, [SITE])
    return run


@pytest.fixture
def leased(store: Store, run: Run) -> Leased:
    """Its VM, taken over by the site, with one cell."""
    return new_vm(store, run, key="vc-b/1", name="sql-b", site=SITE, arms=1)


def part(store: Store, run: Run) -> Run:
    """The site's part as it is stored now."""
    with store.read() as connection:
        return runs.at_site(connection, runs.get_run(connection, run.name), SITE)


def stop(store: Store, run: Run) -> None:
    with store.write() as connection:
        runs.request_stop(connection, run.id, StopRequest.NOW)


def lives(store: Store, run: Run) -> None:
    """A process works there."""
    with store.write() as connection:
        runs.touch_supervisor(connection, part(store, run), pid=1, host="elsewhere")


def controller(store: Store, run: Run) -> None:
    """A process works on the run itself."""
    with store.write() as connection:
        runs.touch_supervisor(connection, run, pid=1, host="elsewhere")


def measured(store: Store, leased: Leased) -> None:
    """Its cell is valid, and the VM restored."""
    one = claim(store, leased)
    with store.write() as connection:
        attempts.finish(connection, one.id, one.token, Outcome.VALID)
        cells.set_restored(connection, leased.vm.id, leased.token, RestoreOutcome.RESTORED)
        leases.release_lease(connection, leased.vm.vm_key, leased.token)


def ends(store: Store, run: Run, *problems: Exception) -> None:
    with store.write() as connection:
        sites.set_end(connection, run.id, SITE, end_of_part(list(problems)))


def waited(store: Store, run: Run, hours: float = 0) -> list[str]:
    """The sites that a controller waits for, which began to so long ago."""
    with store.read() as connection:
        return waited_for(connection, run, utc_now() - timedelta(hours=hours))


@pytest.mark.parametrize(
    ("done", "wanted"),
    [
        ([], [SITE]),
        ([stop], []),
        ([ends], []),
        ([lives], [SITE]),
        ([lives, stop], [SITE]),
        ([lives, ends], [SITE]),
    ],
    ids=["nobody yet", "stopped", "ended", "alive", "alive, stopped", "alive, ended"],
)
def test_a_site_is_waited_for_while_somebody_works_there_or_may_begin(
    store: Store, run: Run, done: list[Any], wanted: list[str]
) -> None:
    """A part that has ended, or that nobody will begin, is not."""
    for step in done:
        step(store, run)

    assert waited(store, run) == wanted


def test_a_site_without_a_sign_of_life_is_given_up(store: Store, run: Run) -> None:
    """After ten minutes since the controller began to wait."""
    assert waited(store, run, GONE_AFTER.total_seconds() / 3600 + 0.1) == []


@pytest.mark.parametrize(
    ("taken", "done", "kinds"),
    [
        (False, [], [EnvironmentProblem]),
        (False, [stop], []),
        (False, [lives], [NotAtBaseline]),
        (True, [], [NotAtBaseline]),
        (True, [stop], [NotAtBaseline]),
        (True, [ends], []),
    ],
    ids=[
        "never began",
        "stopped before",
        "still at work",
        "its VM is changed",
        "stopped after",
        "ended well",
    ],
)
def test_what_a_site_left_is_a_problem_of_the_run(
    store: Store, run: Run, request: pytest.FixtureRequest, taken: bool, done: list[Any], kinds: list[type]
) -> None:
    """A VM that may be changed comes before cells that are missing."""
    if taken:
        request.getfixturevalue("leased")
    for step in done:
        step(store, run)

    assert [type(problem) for problem in problems_of_sites(store, run)] == kinds


def test_a_site_that_restored_its_vm_and_lost_its_process_is_no_problem(
    store: Store, run: Run, leased: Leased
) -> None:
    """Every cell is valid, and nothing is left to do."""
    measured(store, leased)

    assert problems_of_sites(store, run) == []


def test_a_store_that_is_gone_leaves_the_sites_unknown(store: Store, run: Run) -> None:
    """Their VMs may be changed."""
    (store.place.path or Path()).unlink()

    assert [type(problem) for problem in problems_of_sites(store, run)] == [NotAtBaseline]


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (RestoreConflict("sql-b was changed.", fix="vnuma restore sql-b"), RestoreConflict),
        (ZeroDivisionError("a bug"), VnumaError),
    ],
)
def test_a_problem_of_a_site_keeps_its_class_and_names_the_site(
    store: Store, run: Run, problem: Exception, kind: type[VnumaError]
) -> None:
    """So it decides the exit code here as there."""
    ends(store, run, problem)

    (told,) = problems_of_sites(store, run)

    assert isinstance(told, VnumaError)
    assert (type(told), told.exit_code) == (kind, kind.exit_code)
    assert told.what.startswith(f"{SITE}: ")
    assert told.fix == getattr(problem, "fix", None)


def test_a_class_that_this_version_lacks_is_a_problem_of_the_surroundings(store: Store, run: Run) -> None:
    """A newer site may store one."""
    with store.write() as connection:
        document = {"problems": [{"kind": "NotYetInvented", "what": "x", "fix": None}]}
        sites.set_end(connection, run.id, SITE, document)

    assert [type(problem) for problem in problems_of_sites(store, run)] == [EnvironmentProblem]


def test_a_part_is_begun_unless_nothing_of_it_is_left(store: Store, run: Run, leased: Leased) -> None:
    """How it ended before is cleared, and a stop that nobody is left to hear."""
    ends(store, run, InputError("wrong"))
    stop(store, run)

    assert begin_site(store, part(store, run))
    assert [type(problem) for problem in problems_of_sites(store, run)] == [NotAtBaseline]
    assert part(store, run).stop_requested is None

    measured(store, leased)
    assert not begin_site(store, part(store, run))


def test_sites_with_work_left_are_opened_again(store: Store, run: Run, leased: Leased) -> None:
    """A resumed controller waits for them; not for one that is complete."""
    ends(store, run)
    open_sites(store, run)
    assert waited(store, run) == [SITE]

    measured(store, leased)
    ends(store, run)
    open_sites(store, run)
    assert waited(store, run) == []


def test_the_last_process_settles_the_run(store: Store, run: Run, leased: Leased) -> None:
    """Not while another works on it."""
    measured(store, leased)
    lives(store, run)
    settle_if_last(store, part(store, run))
    assert part(store, run).state is RunState.PLANNED

    with store.write() as connection:
        runs.clear_supervisor(connection, part(store, run))
    settle_if_last(store, part(store, run))
    assert part(store, run).state is RunState.FINISHED


@pytest.mark.parametrize("done", [[lives], [stop, controller]], ids=["another works there", "the run stops"])
def test_a_part_has_one_process(store: Store, run: Run, done: list[Any]) -> None:
    """Neither beside another one, nor while the run is being stopped; the part is the run as seen there."""
    assert part_at_site(store, run, SITE).site == SITE
    for step in done:
        step(store, run)
    with store.read() as connection:
        now = runs.get_run(connection, run.name)

    with pytest.raises(VmHeld):
        part_at_site(store, now, SITE)
    with pytest.raises(InputError):
        part_at_site(store, run, "site-c")


@pytest.mark.parametrize("site", [None, "site-c"])
def test_a_vm_stays_at_its_site(store: Store, run: Run, leased: Leased, site: str | None) -> None:
    """An inventory that moves it would have two processes work on it."""
    moved, same = ({"sql-b": Target(name="sql-b", site=there)} for there in (site, SITE))

    with pytest.raises(InputError):
        refuse_moved(store, run, moved)
    refuse_moved(store, run, same)


def test_sites_need_a_store_that_all_of_them_reach() -> None:
    """A file is on one machine."""
    with pytest.raises(EnvironmentProblem):
        refuse_file(parse_place("sqlite:////tmp/vnuma.db"), SITE)
    refuse_file(parse_place("postgresql://ops@db/vnuma"), SITE)


def test_a_part_is_worked_on_by_the_version_that_created_the_run(store: Store, run: Run) -> None:
    """Another one may measure otherwise."""
    with store.write() as connection:
        connection.execute(tables.run.update().values(product_version="0.0.1"))

    with pytest.raises(EnvironmentProblem):
        part_at_site(store, part(store, run), SITE)


@pytest.mark.parametrize(
    ("site", "taken", "raised"), [("site-c", False, True), (SITE, True, False), (SITE, False, True)]
)
def test_a_sites_vms_are_planned_once(
    store: Store, run: Run, tmp_path: Path, site: str, taken: bool, raised: bool
) -> None:
    """At the first start of its part, which needs one there; here a plan meets a vCenter that is away."""
    if taken:
        new_vm(store, run, key="vc-b/1", name="sql-b", site=SITE)
    text = study_text(vms="sql-b")
    targets = {"sql-b": target_away("sql-b", site)}
    asking = StudyRequest(parse_study(text, "s"), text, targets, Permit(), Inventory(tmp_path / "hosts.yml"))

    with pytest.raises(VnumaError) if raised else nullcontext():
        add_site(store, part(store, run), asking)


def test_a_stop_stays_while_another_process_of_the_run_may_hear_it(
    store: Store, run: Run, leased: Leased
) -> None:
    """A site that begins does not revoke it."""
    stop(store, run)
    controller(store, run)

    assert begin_site(store, part(store, run))
    assert part(store, run).stop_requested is StopRequest.NOW


@pytest.mark.parametrize(
    ("done", "unusual"),
    [([], True), ([lives], False), ([ends], False), ([lambda *to: ends(*to, InputError("x"))], True)],
    ids=["nobody came", "at work", "ended", "ended with a problem"],
)
def test_a_site_is_shown_with_what_is_unusual_there(
    store: Store, run: Run, done: list[Any], unusual: bool
) -> None:
    """Nothing where all is well."""
    for step in done:
        step(store, run)

    with store.read() as connection:
        (site,) = progress_of(connection, run.name).sites

    assert (site.alive, site.words is not None) == (done == [lives], unusual)
