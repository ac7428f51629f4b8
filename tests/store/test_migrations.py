"""Stores of every age: kept as data, upgraded, refused when they are newer than the product."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from tests.store.build import START, new_vm
from tests.support.postgresql import Cluster
from vnuma.errors import StoreError
from vnuma.store import attempts, cells, facts, leases, runs, samples, sites, tables
from vnuma.store.migrate import alembic_config
from vnuma.store.open import Store, default_url, open_store
from vnuma.store.place import parse_place
from vnuma.store.rows import CellState, Outcome
from vnuma.store.schema import HEAD, VERSION_TABLE, current_revision

DATA = Path(__file__).parent / "data"
OLD_REVISIONS = sorted(folder.name for folder in DATA.iterdir())


def load(url: str, revision: str) -> None:
    """Make the store that an older product left, from its dump."""
    place = parse_place(url)
    if place.is_sqlite:
        conn = sqlite3.connect(place.path)
        conn.executescript((DATA / revision / "sqlite.sql").read_text())
        conn.close()
    else:
        with psycopg.connect(url) as server:
            server.execute((DATA / revision / "postgresql.sql").read_bytes())


def test_every_revision_before_the_newest_is_kept_as_data() -> None:
    """Whoever adds a revision adds a dump of the one before: the upgrade is then tested."""
    assert [f"{number:04}" for number in range(1, int(HEAD))] == OLD_REVISIONS


@pytest.mark.parametrize("revision", OLD_REVISIONS)
def test_an_older_store_is_upgraded_with_everything_in_it(url: str, revision: str) -> None:
    """Run, VM, baseline, lease, cells, attempts, samples and facts are there; the newest rules hold."""
    load(url, revision)
    store = open_store(url, create=False)
    with store.read() as conn:
        run = runs.get_run(conn, "quick.1")
        (vm,) = leases.vms_of_run(conn, run.id)
        lease = leases.get_lease(conn, "vc/1")
        states = [cell.state for cell in cells.cells_of_run(conn, run.id)]
        outcomes = [attempt.outcome for attempt in attempts.attempts_of_run(conn, run.id)]
        stored = [item.sample for item in samples.iter_samples(conn, run.id)]
        listed = facts.facts_of_run(conn, run.id)
        history = conn.scalars(text("SELECT revision FROM schema_history ORDER BY revision")).all()
    assert (run.seed, run.simulated, run.driver) == (7, "paper", {"name": "FreeTDS", "version": "1.3.17"})
    assert vm.baseline == {"numCPUs": 16}
    assert lease is not None
    assert (lease.holder, lease.token) == ("ops@ctl1", 1)
    assert states == [CellState.VALID, CellState.SKIPPED, CellState.CLAIMED, CellState.PENDING]
    assert outcomes == [Outcome.INTERRUPTED, Outcome.VALID, Outcome.FAILED, Outcome.INVALID, None]
    assert [item.elapsed_ms for item in stored[:6]] == [200.0, 201.0, 200.0, 201.0, 202.0, 203.0]
    assert (stored[6].elapsed_ms, stored[6].reason) == (None, "connection_dropped")
    assert [fact.value for fact in listed] == [True, [0, 1]]
    assert history[-1] == HEAD
    assert revision in history[:-1]
    assert new_vm(store, key="vc/2", arms=1).run.name == "quick.2"
    with pytest.raises(StoreError), store.write() as conn:
        conn.execute(text("UPDATE vm SET baseline_json = '{}'"))


def test_a_part_of_an_earlier_run_at_a_site_stays_readable(url: str) -> None:
    """How it ended is kept; the work unit that did it is gone."""
    load(url, "0009")

    with open_store(url, create=False).read() as conn:
        (part,) = sites.sites_of_run(conn, runs.get_run(conn, "quick.1").id)

    assert (part.name, part.supervisor_pid, part.end) == ("site-b", None, {"problems": []})


_SAMPLES = "SELECT count(*) FROM sample"


def test_who_reads_a_server_s_store_while_it_is_upgraded_reads_on(postgresql: Cluster) -> None:
    """The upgrade waits for that transaction, which sees the rows as before to its end."""
    url = postgresql.new_database()
    load(url, OLD_REVISIONS[0])
    with psycopg.connect(url) as reader, ThreadPoolExecutor(1) as others:
        seen = reader.execute(_SAMPLES).fetchone()
        upgraded = others.submit(open_store, url)
        while not upgraded.done() and not _waits_for(url, reader.info.backend_pid):
            pass
        still_waiting = not upgraded.done()
        assert reader.execute(_SAMPLES).fetchone() == seen
        reader.commit()
        store = upgraded.result(timeout=60)

    assert still_waiting
    with store.read() as conn:
        assert current_revision(conn) == HEAD


def _waits_for(url: str, holder: int) -> bool:
    """Whether a session of the database waits for another."""
    with psycopg.connect(url) as asking:
        blocked = asking.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", [holder]
        ).fetchone()
    return blocked != (0,)


def test_who_reads_a_file_s_store_while_it_is_upgraded_reads_on(sqlite_url: str) -> None:
    """A reader keeps the moment at which it began; who opens the store afterwards finds the newest."""
    load(sqlite_url, OLD_REVISIONS[0])
    reader = sqlite3.connect(parse_place(sqlite_url).path, isolation_level=None)
    with closing(reader):
        reader.execute("PRAGMA journal_mode = WAL")
        reader.execute("BEGIN")
        seen = reader.execute(_SAMPLES).fetchone()
        store = open_store(sqlite_url)
        assert reader.execute(_SAMPLES).fetchone() == seen

    with store.read() as conn:
        assert current_revision(conn) == HEAD


def test_the_migrations_lead_to_the_tables(store: Store) -> None:
    """The tables that the queries use are those that the migrations make."""
    with store.read() as conn:
        context = MigrationContext.configure(
            conn,
            opts={
                "version_table": VERSION_TABLE,
                "compare_type": True,
                "target_metadata": tables.metadata,
            },
        )
        assert compare_metadata(context, tables.metadata) == []


def test_the_newest_revision_is_the_one_that_the_product_expects(store: Store) -> None:
    """The constant that spares importing Alembic is the head of the scripts."""
    with store.read() as conn:
        assert ScriptDirectory.from_config(alembic_config(conn)).get_current_head() == HEAD


def test_a_newer_store_is_refused_with_the_product_that_wrote_it(store: Store, url: str) -> None:
    """The message names the version to install, and nothing is changed."""
    with store.write() as conn:
        conn.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0099'"))
        conn.execute(
            tables.schema_history.insert(),
            {"revision": "0099", "product_version": "7.4.1", "applied_at": START},
        )
    with pytest.raises(StoreError, match=r"This store was written by vnuma 7\.4\.1"):
        open_store(url)


def test_a_file_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    """No tables of ours are added to somebody else's database."""
    url = default_url(tmp_path)
    other = sqlite3.connect(tmp_path / "vnuma.db")
    other.execute("CREATE TABLE bookmarks (url TEXT)")
    with pytest.raises(StoreError):
        open_store(url)
    assert [row[0] for row in other.execute("SELECT name FROM sqlite_master")] == ["bookmarks"]
    other.close()


def test_without_create_a_store_must_be_there(url: str) -> None:
    """A command that only reads makes no empty store."""
    with pytest.raises(StoreError):
        open_store(url, create=False)
    if parse_place(url).is_sqlite:
        assert not parse_place(url).path.exists()


def test_a_migration_that_fails_leaves_the_store_as_it_was(url: str) -> None:
    """The upgrade is one transaction: after a failure the older version still works."""
    load(url, "0001")
    place = parse_place(url)
    clash = "CREATE TRIGGER sample_written_once BEFORE UPDATE ON sample "
    if place.is_sqlite:
        conn = sqlite3.connect(place.path)
        conn.execute(clash + "BEGIN SELECT 1; END")
    else:
        server = psycopg.connect(url, autocommit=True)
        server.execute("CREATE FUNCTION sample_written_once() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    with pytest.raises(StoreError):
        open_store(url)
    if place.is_sqlite:
        version = conn.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
        trigger = conn.execute("SELECT 1 FROM sqlite_master WHERE name = 'vm_written_once'").fetchone()
        conn.close()
    else:
        version = server.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
        trigger = server.execute("SELECT 1 FROM pg_trigger WHERE tgname = 'vm_written_once'").fetchone()
        server.close()
    assert (version, trigger) == (("0001",), None)


def test_opening_a_current_store_does_not_import_alembic(store: Store, url: str) -> None:
    """Alembic takes a second to import; every action of a run opens the store."""
    del store
    code = (
        "import sys\nfrom vnuma.store.open import open_store\n"
        f"open_store({url!r})\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('alembic', 'mako')))\n"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert told.stdout.strip() == "[]"
