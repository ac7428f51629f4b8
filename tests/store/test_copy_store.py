"""A whole store copied into another, as a site does that moves to PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.build import store_of, story, study_text
from tests.store.build import claim, new_run, new_vm, samples
from tests.support.cli import vnuma, vnuma_here
from tests.support.postgresql import Cluster
from vnuma.engine.access.places import audit_file
from vnuma.engine.audit.log import Journal, audit_lines
from vnuma.engine.lease.supervision import claim_supervision
from vnuma.errors import StoreError, UsageError
from vnuma.store import leases, runs, tables
from vnuma.store import samples as sample_rows
from vnuma.store.one_run import copy_store
from vnuma.store.open import Store, default_url, open_store
from vnuma.store.rows import RunState


@pytest.fixture
def old(tmp_path: Path) -> Store:
    """A SQLite store with a finished run, one in the middle of a cell, and lines in the audit log."""
    store = store_of(tmp_path / "vnuma.db", story(text=study_text(blocks=6, sizes="500", forms="client")))
    with store.read() as conn:
        run = runs.get_run(conn, "latest")
    Journal(store, "vc/sql16", "sql16", run).note("looked", "Æther \u2028 'quoted'")
    leased = new_vm(store, new_run(store, "other"), key="vc/2", arms=2)
    got = claim(store, leased)
    with store.write() as conn:
        sample_rows.add_samples(conn, got.id, leased.token, samples(2))
        runs.set_run_state(conn, leased.run.id, RunState.STOPPED)
    return store


def url_of(store: Store) -> str:
    """Its address."""
    return store.place.url.render_as_string(hide_password=False)


def test_a_copied_run_reports_the_same_bytes(old: Store, postgresql: Cluster, tmp_path: Path) -> None:
    """Results as JSON and raw rows as CSV, before and after."""
    new = postgresql.new_store()

    done = vnuma_here("store", "copy", url_of(old), new)

    assert done.code == 0, done.text
    for name in ("json", "csv"):
        before, after = (
            vnuma_here("results", "quick.1", "--format", name, "--store", url) for url in (url_of(old), new)
        )
        assert before.code == 0, before.text
        assert after.out == before.out
        assert len(before.out) > 500


def test_baseline_lease_and_audit_log_come_with_it(old: Store, postgresql: Cluster) -> None:
    """What restores a VM: its baseline, the run's lease with its token, the journal in store and file."""
    new = open_store(postgresql.new_store())

    copy = vnuma_here("store", "copy", url_of(old), url_of(new))

    assert copy.code == 0, copy.text
    with old.read() as before, new.read() as after:
        run = runs.get_run(before, "other.1")
        assert leases.vms_of_run(after, run.id) == leases.vms_of_run(before, run.id)
        assert leases.get_lease(after, "vc/2") == leases.get_lease(before, "vc/2")
    assert audit_lines(new, None) == audit_lines(old, None)
    assert audit_file(new.place).read_bytes() == audit_file(old.place).read_bytes()
    run = new_run(new, "quick")  # its next rows get new ids, and the study its next number
    assert run.name == "quick.2"
    assert claim(new, new_vm(new, run, key="vc/3", host="esx09", arms=1)).id > 0


def test_a_store_with_rows_is_not_copied_into(old: Store, postgresql: Cluster) -> None:
    """None of its runs is lost either: it is unchanged."""
    new = open_store(postgresql.new_store())
    new_run(new, "mine")

    done = vnuma_here("store", "copy", url_of(old), url_of(new))

    assert done.code == 2, done.text
    with new.read() as conn:
        assert [run.name for run in runs.list_runs(conn)] == ["mine.1"]


def test_a_copy_that_breaks_in_the_middle_leaves_nothing_and_can_be_repeated(
    old: Store, postgresql: Cluster
) -> None:
    """The server refuses a sample, after runs, VMs and cells were written."""
    new = open_store(postgresql.new_store())
    postgresql.execute(url_of(new), "ALTER TABLE sample ADD CONSTRAINT none CHECK (iteration < 0)")
    with pytest.raises(StoreError):
        copy_store(old, new)
    assert vnuma_here("store", "copy", url_of(old), url_of(new)).code == 9
    with new.read() as conn:
        assert runs.list_runs(conn) == ()
    assert not audit_file(new.place).exists()
    postgresql.execute(url_of(new), "ALTER TABLE sample DROP CONSTRAINT none")

    rows = copy_store(old, new)

    assert rows["run"] == 2
    assert rows["sample"] > 2
    assert set(rows) == set(tables.metadata.tables) - {"schema_history"}
    with pytest.raises(UsageError):
        copy_store(old, new)


def test_another_audit_log_in_the_copy_s_place_stays_and_no_row_is_copied(
    old: Store, postgresql: Cluster
) -> None:
    """Once it is moved away, the same command copies."""
    new = open_store(postgresql.new_store())
    there = audit_file(new.place)
    there.parent.mkdir(exist_ok=True)
    there.write_text("another store's\n")
    command = ("store", "copy", url_of(old), url_of(new))

    refused = vnuma_here(*command)

    assert refused.code == 9, refused.text
    assert there.read_text() == "another store's\n"
    with new.read() as conn:
        assert runs.list_runs(conn) == ()
    there.unlink()
    assert vnuma_here(*command).code == 0


def test_an_audit_log_that_does_not_fit_leaves_neither_file_nor_rows(old: Store, postgresql: Cluster) -> None:
    """The system stops the copy in the middle, as a full disk does."""
    new = open_store(postgresql.new_store())
    place = audit_file(new.place)
    with audit_file(old.place).open("a") as log:
        log.write("x" * 3_000_000)

    done = vnuma("store", "copy", url_of(old), url_of(new), largest_file_kb=2048)

    assert done.code == 9, done.text
    assert not list(place.parent.glob(f"{place.name}*"))
    with new.read() as conn:
        assert runs.list_runs(conn) == ()


def test_the_audit_log_that_a_killed_copy_left_does_not_stop_the_next(
    old: Store, postgresql: Cluster
) -> None:
    """It was there before the rows, and is the same."""
    new = open_store(postgresql.new_store())
    left = audit_file(new.place)
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(audit_file(old.place).read_bytes())

    done = vnuma_here("store", "copy", url_of(old), url_of(new))

    assert done.code == 0, done.text
    assert audit_lines(new, None) == audit_lines(old, None)


def test_a_run_that_is_alive_is_not_left_behind(old: Store, tmp_path: Path) -> None:
    """What it stores next would be in the old store alone."""
    with old.read() as conn:
        run = runs.get_run(conn, "other.1")
    claim_supervision(old, run)

    done = vnuma_here("store", "copy", url_of(old), default_url(tmp_path / "new"))

    assert done.code == 8, done.text
