"""Runs that earlier versions imported: nothing in them runs, is reached, or names a place on this machine."""

from __future__ import annotations

import sqlite3
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
    connection = sqlite3.connect(path)
    connection.execute("UPDATE run SET inventory = ?, state = 'running'", (str(trap),))
    connection.execute("UPDATE vm SET restored_at = NULL, restore_outcome = NULL")
    connection.execute(
        "UPDATE lease SET run_id = (SELECT max(id) FROM run), holder = 'x@y', "
        "taken_at = '2026-11-17T20:45:10.000000Z'"
    )
    connection.execute("UPDATE cell SET state = 'claimed' WHERE id = (SELECT min(id) FROM cell)")
    connection.execute(
        "INSERT INTO fact (run_id, scope, key, value_json, at) SELECT id, 'imported', 'archive', "
        '\'{"file":"other.vnuma.zip"}\', '
        "created_at FROM run"
    )
    connection.execute("ALTER TABLE audit DROP COLUMN outcome")
    connection.execute("ALTER TABLE audit DROP COLUMN home")
    connection.execute("ALTER TABLE vm DROP COLUMN node")
    connection.execute("DROP TABLE site")
    connection.execute("DROP INDEX fact_run_scope_ix")
    connection.execute("DROP INDEX fact_vm_scope_ix")
    connection.execute("CREATE INDEX fact_run_id_ix ON fact (run_id)")
    connection.execute("UPDATE vnuma_schema_version SET version_num = '0006'")
    connection.execute("DELETE FROM schema_history WHERE revision > '0006'")
    connection.commit()
    connection.close()
    return open_store(f"sqlite:///{path}")


def test_restore_leaves_an_earlier_products_import_alone(poisoned: Store, tmp_path: Path) -> None:
    """Its inventory is gone, no VM of it counts as left, and a name or run asked for is refused."""
    with poisoned.read() as connection:
        assert cells.unrestored(connection) == []
        assert runs.get_run(connection, "quick.1").inventory is None
        assert leases.get_lease(connection, "vc/sql16") is None
    assert restore_leftovers(poisoned, RestoreRequest()).problems == []
    with pytest.raises(InputError, match="sql16"):
        restore_leftovers(poisoned, RestoreRequest(["sql16"]))
    with pytest.raises(InputError, match="was imported"):
        restore_leftovers(poisoned, RestoreRequest(run="quick.1"))
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
    for attempt in (leases.take_lease, leases.raise_token):
        with pytest.raises(InputError, match="was imported"), poisoned.write() as connection:
            attempt(connection, vm.vm_key, run.id, "me")
    with pytest.raises(InputError, match="was imported"):
        open_run(run.name, url)
    with pytest.raises(InputError, match="was imported"):
        reopen(poisoned, run.name)
    with pytest.raises(InputError, match="was imported"):
        differences_now(poisoned, run, vm, trap)
    with pytest.raises(InputError, match="no baseline"):
        find_baseline(poisoned, vm.name, None)
    assert not (tmp_path / "sprung").exists()
    assert load_run(poisoned, "quick.1").label == "quick.1 (from other.vnuma.zip)"


@pytest.mark.parametrize("name", ["/owned", "../owned", "x\x1b"])
def test_no_file_is_written_outside_for_a_stored_name(
    exported: tuple[Store, LoadedRun, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A store may hold such a name already: report and export ask for a file name instead."""
    path = tmp_path / "stored.db"
    path.write_bytes(exported[0].place.path.read_bytes())
    connection = sqlite3.connect(path)
    connection.execute("UPDATE run SET name = ?", (f"{tmp_path}{name}" if name[0] == "/" else name,))
    connection.commit()
    connection.close()
    inside = tmp_path / "in" / "side"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    loaded = load_run(open_store(f"sqlite:///{path}"), "latest")
    before = set(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="-o FILE"):
        write_report(loaded, None, "html")[0]
    with pytest.raises(InputError, match="-o FILE"):
        default_path(loaded)
    assert set(tmp_path.rglob("*")) == before
