"""Archives and stores of strangers: nothing in them runs, is reached, or names a place on this machine."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from vnuma.engine.access.context import open_run
from vnuma.engine.restore.baseline_diff import differences_now
from vnuma.engine.restore.restore_leftovers import Wanted, restore_leftovers
from vnuma.errors import InputError, VnumaError
from vnuma.report.archive import manifest
from vnuma.report.archive.read import import_run
from vnuma.report.archive.write import default_path
from vnuma.report.model.model import LoadedRun, load_run
from vnuma.report.page.render import write_report
from vnuma.store import baselines, leases, runs, vms
from vnuma.store.open import Store, open_store

Change = Callable[[sqlite3.Connection], object]

_ONCE = ("vm_written_once", "sample_written_once")


@pytest.fixture
def archive(exported: tuple[Store, LoadedRun, Path]) -> Path:
    """An archive as `vnuma export` makes it."""
    return exported[2]


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


def sealed(files: dict[str, bytes], target: Path) -> Path:
    """An archive of these files whose manifest is true to them."""
    said = json.loads(files.pop("manifest.json"))
    said["files"] = [
        {"path": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in files.items()
    ]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in {"manifest.json": json.dumps(said).encode(), **files}.items():
            out.writestr(name, content)
    return target


def contents(archive: Path) -> dict[str, bytes]:
    """The files of an archive that an import reads; without the others it packs in no time."""
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in ("manifest.json", "vnuma.db", "results.json")}


def forged(archive: Path, tmp_path: Path, change: Change | str) -> Path:
    """The archive with a change to the store inside; its checksums hold."""
    files, inner = contents(archive), tmp_path / "inner.db"
    inner.write_bytes(files["vnuma.db"])
    connection = sqlite3.connect(inner)
    guards = [
        row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE name IN (?, ?)", _ONCE)
    ]
    for name in _ONCE:
        connection.execute(f"DROP TRIGGER {name}")
    if isinstance(change, str):
        connection.execute(change)
    else:
        change(connection)
    connection.execute("PRAGMA writable_schema = OFF")
    for guard in guards:
        connection.execute(guard)
    connection.commit()
    connection.close()
    return sealed(files | {"vnuma.db": inner.read_bytes()}, tmp_path / "forged.vnuma.zip")


def refused(store: Store, archive: Path, *words: str) -> None:
    """The archive is refused with these words, and the store has nothing of it."""
    with pytest.raises(VnumaError) as caught:
        import_run(store, archive)
    assert caught.value.exit_code in (3, 9)
    assert caught.value.fix
    for word in (archive.name, *words):
        assert word in caught.value.what
    with store.read() as connection:
        assert runs.list_runs(connection) == ()


def test_no_inventory_comes_out_of_an_archive(
    archive: Path, store: Store, tmp_path: Path, trap: Path
) -> None:
    """Whatever path the archived run names, the imported one has none."""
    found = import_run(store, forged(archive, tmp_path, f"UPDATE run SET inventory = '{trap}'"))
    with store.read() as connection:
        assert runs.get_run(connection, found.run).inventory is None


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE vm SET restored_at = NULL, restore_outcome = NULL",
        "UPDATE run SET state = 'running', finished_at = NULL",
        "UPDATE cell SET state = 'claimed' WHERE id = (SELECT min(id) FROM cell)",
        "UPDATE attempt SET ended_at = NULL, outcome = NULL WHERE id = (SELECT min(id) FROM attempt)",
    ],
)
def test_an_unfinished_run_is_not_imported(archive: Path, store: Store, tmp_path: Path, change: str) -> None:
    """Export makes archives of ended runs only; one that is not over would claim VMs or hosts here."""
    refused(store, forged(archive, tmp_path, change), "not over")


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
        "INSERT INTO fact (run_id, scope, key, value_json, at) SELECT id, 'imported', 'archive', '{}', "
        "created_at FROM run"
    )
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
        assert baselines.unrestored(connection) == []
        assert runs.get_run(connection, "quick.1").inventory is None
        assert leases.get_lease(connection, "vc/sql16") is None
    assert restore_leftovers(poisoned, Wanted()).problems == []
    with pytest.raises(InputError, match="sql16"):
        restore_leftovers(poisoned, Wanted(["sql16"]))
    with pytest.raises(InputError, match="was imported"):
        restore_leftovers(poisoned, Wanted(run="quick.1"))
    assert not (tmp_path / "sprung").exists()


def test_nothing_takes_an_imported_run_up(
    archive: Path, store: Store, tmp_path: Path, trap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lease, no resume, no work by hand, no look at its VMs; another run may lease the same VM."""
    name = import_run(store, archive).run
    monkeypatch.setenv("VNUMA_HOME", str(tmp_path))
    url = f"sqlite:///{store.place.path}"
    with store.read() as connection:
        run = runs.get_run(connection, name)
        (vm,) = vms.vms_of_run(connection, run.id)
    for attempt in (leases.take_lease, leases.raise_token):
        with pytest.raises(InputError, match="was imported"), store.write() as connection:
            attempt(connection, vm.vm_key, run.id, "me")
    with pytest.raises(InputError, match="was imported"):
        open_run(name, url)
    with pytest.raises(InputError, match="was imported"):
        differences_now(store, vm.name, name, trap)
    with pytest.raises(InputError, match="no baseline"):
        differences_now(store, vm.name, None, trap)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize("name", ["/tmp/owned", "../owned", "quick.1\x1b[2J", "quick.1\n", "a/b.1", ".."])
def test_a_run_is_not_named_like_a_path(archive: Path, store: Store, tmp_path: Path, name: str) -> None:
    """A run is called STUDY.NUMBER; another name is refused where it enters."""
    path = forged(archive, tmp_path, lambda c: c.execute("UPDATE run SET name = ?", (name,)))
    refused(store, path, "name")


@pytest.mark.parametrize("column", ["name", "path", "esxi_host", "vm_key"])
def test_names_in_an_archive_have_no_control_characters(
    archive: Path, store: Store, tmp_path: Path, column: str
) -> None:
    """They would reach the terminal of whoever lists VMs."""
    path = forged(archive, tmp_path, f"UPDATE vm SET {column} = 'sql16' || char(27) || '[2J'")
    refused(store, path, f"vm.{column}")


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


SCHEMAS = {
    "trigger": "CREATE TRIGGER more AFTER INSERT ON cell BEGIN SELECT 1; END",
    "view": "CREATE VIEW seen AS SELECT * FROM run",
    "table": "CREATE TABLE bookmarks (url TEXT)",
    "index": "CREATE INDEX more ON cell (abs(block))",
    "generated column": "ALTER TABLE cell ADD COLUMN more AS (hex(zeroblob(100000000)))",
    "virtual table": "CREATE VIRTUAL TABLE found USING fts5(words)",
    "missing column": "ALTER TABLE audit DROP COLUMN ticket",
}


@pytest.mark.parametrize("change", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_that_vnuma_does_not_make_is_refused(
    archive: Path, store: Store, tmp_path: Path, change: str
) -> None:
    """Triggers, views, expressions and strangers' tables would run or be read with the rest."""
    refused(store, forged(archive, tmp_path, change), "schema")


def test_a_view_in_the_place_of_a_table_is_refused(archive: Path, store: Store, tmp_path: Path) -> None:
    """Reading a table of that name would run a query that never ends."""

    def change(connection: sqlite3.Connection) -> None:
        connection.execute("DROP TABLE audit")
        connection.execute(
            "CREATE VIEW audit AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
            "SELECT id, 1 AS run_id, '' AS at, '' AS who, '' AS vm_key, '' AS vm, '' AS action, "
            "NULL AS change_json, NULL AS detail, NULL AS ticket FROM n"
        )

    refused(store, forged(archive, tmp_path, change), "schema")


VALUES = {
    "deep JSON": ("fact", "value_json", "'" + "[" * 20_000 + "]" * 20_000 + "'"),
    "less deep JSON": ("fact", "value_json", "'" + "[" * 500 + "]" * 500 + "'"),
    "NaN": ("fact", "value_json", "'NaN'"),
    "endless": ("fact", "value_json", "'1e999'"),
    "many digits": ("fact", "value_json", "'" + "9" * 5_000 + "'"),
    "no JSON": ("fact", "value_json", "'{'"),
    "lone surrogate": ("fact", "value_json", r"""'"\ud800"'"""),
    "bad time": ("run", "created_at", "'yesterday'"),
    "time of no zone": ("run", "created_at", "'2026-11-17T20:45:10'"),
    "text as a number": ("attempt", "token", "'many'"),
    "bytes": ("vm", "name", "x'ff00'"),
    "endless figure": ("sample", "elapsed_ms", "9e999"),
}


@pytest.mark.parametrize("case", VALUES.values(), ids=VALUES)
def test_a_value_that_vnuma_does_not_write_is_refused(
    archive: Path, store: Store, tmp_path: Path, case: tuple[str, str, str]
) -> None:
    """Its table and column are named: SQLite itself takes any value anywhere."""
    table, column, value = case
    refused(store, forged(archive, tmp_path, f"UPDATE {table} SET {column} = {value}"), f"{table}.{column}")


def test_a_huge_value_is_refused(archive: Path, store: Store, tmp_path: Path) -> None:
    """A text of 20 MB packs into kilobytes: SQLite itself stops before it is in memory."""
    change = "UPDATE attempt SET detail = printf('%.*c', 20000000, 'x') WHERE id = 1"
    refused(store, forged(archive, tmp_path, change), "too big")


def test_a_run_that_cannot_be_analysed_is_not_imported(archive: Path, store: Store, tmp_path: Path) -> None:
    """What is well formed and still makes no sense is found before anything is stored."""
    refused(store, forged(archive, tmp_path, "UPDATE study SET yaml = 'name: quick'"))


@pytest.mark.parametrize("part", ["manifest.json", "results.json"])
@pytest.mark.parametrize(
    "content", ["[" * 100_000, "[]", '{"a": NaN}', "7" * 5_000, "\ud800", '{"a": "\\ud800"}']
)
def test_documents_of_an_archive_are_read_with_care(
    archive: Path, store: Store, tmp_path: Path, part: str, content: str
) -> None:
    """Deep, wrong or endless JSON costs one sentence."""
    files = contents(archive)
    bad = content.encode("utf-8", "surrogatepass")
    path = tmp_path / "forged.vnuma.zip"
    if part == "manifest.json":
        with zipfile.ZipFile(path, "w") as out:
            for name, kept in (files | {part: bad}).items():
                out.writestr(name, kept)
    else:
        sealed(files | {part: bad}, path)
    refused(store, path)


@pytest.mark.parametrize("name", ["../out.txt", "/out.txt", "a/../../out.txt", "a\x1b.txt"])
def test_an_entry_is_not_named_like_a_path_elsewhere(
    archive: Path, store: Store, tmp_path: Path, name: str
) -> None:
    """Whoever unpacks the archive by hand would write there."""
    path = sealed(contents(archive) | {name: b"x"}, tmp_path / "forged.vnuma.zip")
    refused(store, path, "entry")


def test_a_bomb_is_refused_before_it_is_unpacked(
    archive: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5 MB that unpack to gigabytes: what the directory of the zip says is enough."""
    monkeypatch.setattr(manifest, "MOST_UNPACKED", 100_000)
    refused(store, archive, "MB")
