"""Studies, runs and their facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.build import claim, new_run, new_vm
from vnuma.errors import InputError, LeaseLost, StoreError
from vnuma.store import cells, facts, leases, runs, sites
from vnuma.store.open import Store, open_store
from vnuma.store.rows import RunState, StopRequest


def test_a_study_is_kept_once_per_text(store: Store) -> None:
    """Saving the same text again gives the same study; another text or name gives another."""
    with store.write() as conn:
        first = runs.save_study(conn, "quick", "blocks: 2\n")
        assert runs.save_study(conn, "quick", "blocks: 2\n") == first
        assert runs.save_study(conn, "quick", "blocks: 3\n").id != first.id
        assert runs.save_study(conn, "copy", "blocks: 2\n").id != first.id
    with store.read() as conn:
        assert runs.get_study(conn, first.id).yaml == "blocks: 2\n"


def test_runs_are_numbered_per_study_name(store: Store) -> None:
    """A run's name is the study's name and the next number, whatever the study's text was."""
    with store.write() as conn:
        older = runs.save_study(conn, "quick", "a: 1\n")
        newer = runs.save_study(conn, "quick", "a: 2\n")
        other = runs.save_study(conn, "fleet", "a: 1\n")
        names = [runs.create_run(conn, study, seed=1).name for study in (older, newer, other, older)]
    assert names == ["quick.1", "quick.2", "fleet.1", "quick.3"]


def test_a_run_is_found_by_name_by_id_and_as_latest(store: Store) -> None:
    """All three ways of naming a run give the same run."""
    first, second = new_run(store), new_run(store)
    with store.read() as conn:
        assert runs.get_run(conn, "quick.1") == first
        assert runs.get_run(conn, first.id) == first
        assert runs.get_run(conn, str(first.id)) == first
        assert runs.get_run(conn, "latest") == second
        assert runs.list_runs(conn) == (first, second)


@pytest.mark.parametrize("ref", ["quick.9", "9", "9" * 30, "latest"])
def test_an_unknown_run_is_an_input_error(store: Store, ref: str) -> None:
    """A name, id or 'latest' that fits no run; nothing is reported as done to one."""
    with store.read() as conn, pytest.raises(InputError):
        runs.get_run(conn, ref)
    with store.write() as conn, pytest.raises(StoreError):
        runs.set_run_state(conn, 99, RunState.RUNNING)
    with store.write() as conn, pytest.raises(StoreError):
        facts.add_vm_facts(conn, 99, "host", {"bios": "1"})


@pytest.mark.parametrize(
    ("state", "text", "imported", "found"),
    [
        (RunState.RUNNING, "blocks: 2\n", False, True),
        (RunState.STOPPED, "blocks: 2\n", False, True),
        (RunState.FINISHED, "blocks: 2\n", False, False),
        (RunState.STOPPED, "blocks: 3\n", False, False),
        (RunState.STOPPED, "blocks: 2\n", True, False),
    ],
)
def test_only_the_latest_run_of_a_study_can_be_its_unfinished_one(
    store: Store, state: RunState, text: str, imported: bool, found: bool
) -> None:
    """Of the same text, made here; a stopped run before a finished one is history."""
    with store.write() as conn:
        study = runs.save_study(conn, "quick", "blocks: 2\n")
        first, second = (runs.create_run(conn, study, seed=1) for _ in range(2))
        runs.set_run_state(conn, first.id, RunState.FINISHED if imported else RunState.STOPPED)
        runs.set_run_state(conn, second.id, state)
        if imported:
            facts.add_run_facts(conn, second.id, runs.IMPORTED, {"file": "a.zip"})

        left = runs.unfinished(conn, "quick", text)

    assert (left and left.name) == (second.name if found else None)


def test_everything_said_about_a_run_is_read_back(store: Store) -> None:
    """Seed, driver, scenario and inventory come back as they were given."""
    with store.write() as conn:
        study = runs.save_study(conn, "quick", "a: 1\n")
        made = runs.create_run(conn, study, seed=2**40, inventory="inventories/lab")
        runs.set_origin(conn, made, simulated="paper", driver={"name": "FreeTDS"})
    with store.read() as conn:
        run = runs.get_run(conn, "latest")
    assert (run.seed, run.driver, run.simulated) == (2**40, {"name": "FreeTDS"}, "paper")
    assert (run.inventory, run.state, run.created_at.utcoffset()) == (
        "inventories/lab",
        RunState.PLANNED,
        run.created_at - run.created_at,
    )


def test_an_ended_run_has_a_finish_time_and_a_resumed_one_loses_it(store: Store) -> None:
    """The finish time follows the state."""
    run = new_run(store)
    finished = []
    for state in (RunState.RUNNING, RunState.STOPPED, RunState.RUNNING, RunState.CONFLICT):
        with store.write() as conn:
            runs.set_run_state(conn, run.id, state)
            now = runs.get_run(conn, run.id)
        assert now.state is state
        finished.append(now.finished_at is not None)
    assert finished == [False, True, False, True]
    for how in (StopRequest.CELL, StopRequest.NOW, None):
        with store.write() as conn:
            runs.request_stop(conn, run.id, how)
            assert runs.get_run(conn, run.id).stop_requested is how


def test_the_supervisor_leaves_its_traces(store: Store) -> None:
    """Process, host and heartbeat are stored and cleared together."""
    run = new_run(store)
    with store.write() as conn:
        runs.touch_supervisor(conn, run, pid=4711, host="ctl1")
        alive = runs.get_run(conn, run.id)
        runs.clear_supervisor(conn, run)
        gone = runs.get_run(conn, run.id)
    assert (alive.supervisor_pid, alive.supervisor_host) == (4711, "ctl1")
    assert alive.heartbeat_at is not None
    assert (gone.supervisor_pid, gone.supervisor_host, gone.heartbeat_at) == (None, None, None)


def test_facts_of_run_vm_and_attempt_are_listed_in_order(store: Store) -> None:
    """Each fact knows what it is about; a repeated key keeps both values."""
    leased = new_vm(store, arms=1)
    attempt = claim(store, leased)
    with store.write() as conn:
        facts.add_run_facts(conn, leased.run.id, "product", {"seed": None})
        facts.add_vm_facts(conn, leased.vm.id, "host", {"bios": "2.76"})
        facts.add_vm_facts(conn, leased.vm.id, "host", {"bios": "2.82"})
        facts.add_attempt_facts(conn, attempt.id, leased.token, {"guest": {"nodes": [0, 1]}})
    with store.read() as conn:
        listed = facts.facts_of_run(conn, leased.run.id)
        host = facts.facts_of_run(conn, leased.run.id, "host")
    assert [(fact.scope, fact.key, fact.value) for fact in listed] == [
        ("product", "seed", None),
        ("host", "bios", "2.76"),
        ("host", "bios", "2.82"),
        ("guest", "nodes", [0, 1]),
    ]
    assert [(fact.vm_id, fact.attempt_id) for fact in listed[2:]] == [
        (leased.vm.id, None),
        (leased.vm.id, attempt.id),
    ]
    assert host == listed[1:3]
    with store.write() as conn, pytest.raises(LeaseLost):
        facts.add_attempt_facts(conn, attempt.id, leased.token - 1, {"guest": {"nodes": 1}})


@pytest.mark.parametrize("site", [None, "site-b", "unplanned"])
def test_a_step_reads_what_the_single_reads_give(store: Store, site: str | None) -> None:
    """Run, study and VM in one SELECT; of a site's VM the run is that site's part."""
    run = new_run(store)
    leased = new_vm(store, run, name="sql16", site=site)
    new_vm(store, run, key="vc/2", name="sql17")
    with store.write() as conn:
        sites.add_sites(conn, run.id, ["site-b"])
        runs.touch_supervisor(conn, runs.at_site(conn, run, "site-b"), pid=7, host="b")
        runs.touch_supervisor(conn, run, pid=8, host="a")
        cells.correct(conn, leased.vm.id, leased.token, {"numCPUs": 8})

    with store.read() as conn:
        single = runs.get_run(conn, run.name)
        expected = (
            runs.at_site(conn, single, site),
            runs.get_study(conn, single.study_id),
            leases.vm_named(conn, run.id, "sql16"),
        )
        assert leases.vm_at_work(conn, run.name, "sql16") == expected
        assert expected[0].supervisor_pid == (7 if site == "site-b" else 8)
        assert leases.vm_at_work(conn, run.name, "sql18") is None
        assert leases.vm_at_work(conn, "quick.9", "sql16") is None


def test_a_step_reads_no_imported_run(store: Store) -> None:
    """Nothing may be done to its VMs; another run of the study is not affected."""
    imported, own = new_run(store), new_run(store)
    new_vm(store, imported)
    new_vm(store, own, key="vc/2")
    with store.write() as conn:
        facts.add_run_facts(conn, imported.id, runs.IMPORTED, {"file": "a.zip"})

    with store.read() as conn:
        assert leases.vm_at_work(conn, imported.name, "sql16") is None
        assert leases.vm_at_work(conn, own.name, "sql16") is not None
        with pytest.raises(InputError):
            runs.refuse_imported(conn, imported.id)
        runs.refuse_imported(conn, own.id)


def test_a_store_that_is_kept_open_keeps_its_write_ahead_log(sqlite_url: str) -> None:
    """Without it each unit of work makes the log and removes it again."""
    store = open_store(sqlite_url)
    log = Path(f"{store.place.path}-wal")
    with store.write() as conn:
        runs.save_study(conn, "quick", "name: quick")
    assert not log.exists()

    with store.kept_open():
        with store.write() as conn:
            runs.save_study(conn, "other", "name: other")
        assert log.exists()
