"""Runs that earlier versions imported: nothing in them runs, is reached, or names a place on this machine."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from vnuma.engine.access.context import open_run
from vnuma.engine.restore.restore import differences_now, find_baseline
from vnuma.engine.restore.restore_leftovers import RestoreRequest, restore_leftovers
from vnuma.engine.run.start import reopen
from vnuma.errors import InputError
from vnuma.report.archive.write import default_path
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.report.page.render import write_report
from vnuma.store import cells, leases, runs
from vnuma.store.open import Store, open_store

EARLIER = """
UPDATE vm SET restored_at = NULL, restore_outcome = NULL;
UPDATE lease SET run_id = (SELECT max(id) FROM run), holder = 'x@y', taken_at = '2026-11-17T20:45:10.000000Z';
UPDATE cell SET state = 'claimed' WHERE id = (SELECT min(id) FROM cell);
INSERT INTO fact (run_id, scope, key, value_json, at)
    SELECT id, 'imported', 'archive', '{"file":"other.vnuma.zip"}', created_at FROM run;
ALTER TABLE audit DROP COLUMN outcome;
ALTER TABLE audit DROP COLUMN home;
ALTER TABLE vm DROP COLUMN node;
DROP TABLE site;
DROP INDEX fact_run_scope_ix;
DROP INDEX fact_vm_scope_ix;
CREATE INDEX fact_run_id_ix ON fact (run_id);
UPDATE vnuma_schema_version SET version_num = '0006';
DELETE FROM schema_history WHERE revision > '0006';
"""
"""What makes a store that of schema 0006, into which its product imported a run at work."""


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """An inventory that creates a file `sprung` when read."""
    path = tmp_path / "trap.yml"
    path.write_text(
        "plugin: ansible.builtin.constructed\nstrict: true\ncompose:\n"
        f"""  ours: "lookup('ansible.builtin.pipe', 'touch {tmp_path}/sprung')"\n"""
        f"""groups:\n  all_of_them: "lookup('ansible.builtin.pipe', 'touch {tmp_path}/sprung')"\n"""
    )
    return path


@pytest.fixture
def poisoned(exported: tuple[Store, LoadedRun, Path], tmp_path: Path, trap: Path) -> Store:
    """A store into which an earlier product imported a run with an inventory and a VM to restore."""
    content = exported[0].place.path.read_bytes()
    path = tmp_path / "poisoned.db"
    path.write_bytes(content)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE run SET inventory = ?, state = 'running'", (str(trap),))
        connection.executescript(EARLIER)
    return open_store(f"sqlite:///{path}")


def test_restore_leaves_an_earlier_products_import_alone(poisoned: Store, tmp_path: Path) -> None:
    """Its inventory is gone, no VM of it counts as left, and a name or run asked for is refused."""
    with poisoned.read() as connection:
        assert cells.unrestored(connection) == []
        assert runs.get_run(connection, "quick.1").inventory is None
        assert leases.get_lease(connection, "vc/sql16") is None
    assert restore_leftovers(poisoned, RestoreRequest()).problems == []
    for asked in (RestoreRequest(["sql16"]), RestoreRequest(run="quick.1")):
        with pytest.raises(InputError):
            restore_leftovers(poisoned, asked)
    assert not (tmp_path / "sprung").exists()


def test_nothing_takes_an_imported_run_up(
    poisoned: Store, tmp_path: Path, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lease, no resume, no work by hand, no look at its VMs; its results are read."""
    monkeypatch.setenv("VNUMA_HOME", str(tmp_path))
    url = f"sqlite:///{poisoned.place.path}"
    with poisoned.read() as connection:
        run = runs.get_run(connection, "quick.1")
        (vm,) = leases.vms_of_run(connection, run.id)

    def leased(take: Callable[..., object]) -> None:
        with poisoned.write() as connection:
            take(connection, vm.vm_key, run.id, "me")

    refused = []
    for attempt in (
        partial(leased, leases.take_lease),
        partial(leased, leases.raise_token),
        partial(open_run, run.name, url),
        partial(reopen, poisoned, run.name),
        partial(differences_now, poisoned, run, vm, trap),
        partial(find_baseline, poisoned, vm.name, None),
    ):
        with pytest.raises(InputError) as caught:
            attempt()
        refused.append(caught.value.what.partition(" was imported")[1])

    assert refused == [" was imported"] * 5 + [""]  # of a VM without a baseline there is nothing to restore
    assert not (tmp_path / "sprung").exists()
    assert load_run(poisoned, "quick.1").label == "quick.1 (from other.vnuma.zip)"


@pytest.mark.parametrize("name", ["/owned", "../owned", "x\x1b"])
def test_no_file_is_written_outside_for_a_stored_name(
    exported: tuple[Store, LoadedRun, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A store may hold such a name already: report and export ask for a file name instead."""
    path = tmp_path / "stored.db"
    path.write_bytes(exported[0].place.path.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE run SET name = ?", (f"{tmp_path}{name}" if name[0] == "/" else name,))
    inside = tmp_path / "in" / "side"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    loaded = load_run(open_store(f"sqlite:///{path}"), "latest")
    before = set(tmp_path.rglob("*"))
    for write in (lambda: write_report(loaded, None, "html"), lambda: default_path(loaded)):
        with pytest.raises(InputError):
            write()
    assert set(tmp_path.rglob("*")) == before
