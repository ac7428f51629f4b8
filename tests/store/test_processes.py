"""Several controllers at once, and controllers that die."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from sqlalchemy import Connection, text

from tests.store import workers
from tests.store.build import claim, new_run, new_vm, samples
from vnuma.errors import LeaseLost, StoreError
from vnuma.store import estate_checks, runs, tables
from vnuma.store import samples as sample_rows
from vnuma.store.open import Store, open_store

SQLITE_FIRST = pytest.mark.parametrize(
    "url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True
)
"""Claims of cells race on both in every gate; these, on PostgreSQL, in the long tests."""


@SQLITE_FIRST
def test_four_processes_open_an_empty_store_at_once(url: str) -> None:
    """The migrations run once; every process ends up with the same store."""
    assert workers.together(4, workers.open_and_count, url) == [1, 1, 1, 1]


@pytest.mark.parametrize("blocks", [2, pytest.param(10, marks=pytest.mark.long)])
def test_60_or_300_cells_are_claimed_exactly_once_by_four_processes(
    store: Store, url: str, blocks: int
) -> None:
    """Each cell once, each VM's in the order of its positions, whoever claims them."""
    run = new_run(store)
    leased = [
        new_vm(
            store,
            run,
            key=f"vc/{number}",
            name=f"vm{number}",
            host=f"esx{number % 2}",
            arms=10,
            blocks=blocks,
        )
        for number in range(3)
    ]
    answers = workers.together(
        4, workers.claim_all, url, run.id, [(item.vm.id, item.token) for item in leased]
    )
    claimed = Counter(cell for answer in answers for cell in answer)
    assert claimed == Counter((item.vm.id, place) for item in leased for place in range(10 * blocks))
    with store.read() as conn:
        for item in leased:
            rows = conn.execute(
                text(
                    "SELECT position FROM cell JOIN attempt ON attempt.cell_id = cell.id"
                    " WHERE vm_id = :vm ORDER BY attempt.started_at, attempt.id"
                ),
                {"vm": item.vm.id},
            )
            assert [row.position for row in rows] == list(range(10 * blocks))


@SQLITE_FIRST
def test_processes_that_create_runs_at_once_get_different_names(store: Store, url: str) -> None:
    """Forty runs of one study name are numbered 1 to 40."""
    answers = workers.together(4, workers.create_runs, url, 10)
    names = [name for answer in answers for name in answer]
    assert sorted(names) == sorted(f"quick.{number}" for number in range(1, 41))
    with store.read() as conn:
        assert len(runs.list_runs(conn)) == 40


@SQLITE_FIRST
def test_controllers_that_start_one_new_study_at_once_get_a_run_each(store: Store, url: str) -> None:
    """Nobody has stored its text before: both do, and one row is kept."""
    assert sorted(workers.together(2, workers.start_study, url)) == ["quick.1", "quick.2"]
    with store.read() as conn:
        assert len(conn.execute(tables.study.select()).all()) == 1


@SQLITE_FIRST
def test_of_processes_that_record_the_same_facts_one_does(store: Store, url: str) -> None:
    """The others are refused as if they had come later."""
    answers = workers.together(3, workers.record_check, url)
    assert Counter(answers) == {"recorded": 1, "InputError": 2}
    with store.read() as conn:
        assert len(estate_checks.checks_of(conn)) == 1


@SQLITE_FIRST
def test_of_several_runs_one_gets_the_lease(store: Store, url: str) -> None:
    """Processes that take a VM at the same moment for different runs: one run wins everywhere."""
    run_ids = [new_run(store).id for _ in range(5)]
    answers = workers.together(4, workers.take_leases, url, run_ids)
    winners = {run_id for answer in answers for run_id in answer}
    assert len(winners) == 1


def test_a_killed_writer_loses_nothing_that_was_committed(store: Store, url: str) -> None:
    """kill -9 inside a transaction: the committed row is there, the other is not, others can write."""
    worker = workers.Worker(workers.write_and_hang, url)
    assert worker.answer() == "written"
    worker.kill()
    after = open_store(url)
    with after.write() as conn:
        runs.save_study(conn, "later", "a: 1\n")
    with after.read() as conn:
        names = conn.scalars(tables.study.select().with_only_columns(tables.study.c.name)).all()
    assert sorted(names) == ["committed", "later"]


def test_a_token_is_not_raised_between_check_and_commit(store: Store, url: str) -> None:
    """Whoever raises it waits for the write that has passed the check; the next write is refused."""
    leased = new_vm(store, arms=1)
    got = claim(store, leased)
    with store.write() as conn:
        sample_rows.add_samples(conn, got.id, leased.token, samples(1))
        rival = workers.Worker(workers.raise_token, url, "vc/1", leased.run.id)
        assert rival.answer() == "raising"
        assert not rival.pipe.poll(0.5)
    assert rival.answer() == leased.token + 1
    rival.end()
    with pytest.raises(LeaseLost), store.write() as conn:
        sample_rows.add_samples(conn, got.id, leased.token, samples(1, first=2))
    with store.read() as conn:
        assert len(list(sample_rows.iter_samples(conn, leased.run.id))) == 1


def test_a_write_unit_is_undone_as_a_whole(store: Store) -> None:
    """An error after the first statement leaves nothing of it."""

    def save_and_fail(conn: Connection) -> None:
        runs.save_study(conn, "quick", "a: 1\n")
        raise KeyError("quick")

    with pytest.raises(KeyError), store.write() as conn:
        save_and_fail(conn)
    with store.read() as conn:
        assert conn.execute(tables.study.select()).all() == []


def test_a_read_unit_is_a_snapshot_and_cannot_write(store: Store) -> None:
    """What another process commits meanwhile is not seen, and a write is refused."""
    with store.read() as conn:
        assert runs.list_runs(conn) == ()
        new_run(store)
        assert runs.list_runs(conn) == ()
    with pytest.raises(StoreError), store.read() as conn:
        runs.save_study(conn, "quick", "a: 1\n")


def test_whoever_looks_at_a_run_first_is_seen_by_the_second(store: Store) -> None:
    """Of two processes that want to look after a run the second waits, and then finds the first."""
    run = new_run(store)
    seen: list[int | None] = []

    def second() -> None:
        with store.write() as conn:
            seen.append(runs.lock_run(conn, run).supervisor_pid)

    thread = threading.Thread(target=second)
    with store.write() as conn:
        runs.lock_run(conn, run)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        runs.touch_supervisor(conn, run, pid=4711, host="ctl1")
    thread.join(120)
    assert seen == [4711]
