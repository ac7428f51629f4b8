"""A store that fails: full, locked, damaged, forbidden. Each says what, where and what next."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, text

from tests.store import workers
from tests.support import small_disk as disk
from tests.support.postgresql import Cluster
from vnuma.cli.options import opened_store
from vnuma.errors import StoreAway, StoreError, StoreUnwritable
from vnuma.store import open as open_module
from vnuma.store import postgresql as store_postgresql
from vnuma.store import runs, tables
from vnuma.store.open import Store, default_url, open_store
from vnuma.store.postgresql import Patience, is_away


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    with disk.small_disk(tmp_path / "small", "size=1m") as folder:
        yield folder


def committed(url: str) -> int:
    """How many studies a store holds."""
    with open_store(url, create=False).read() as conn:
        return len(conn.execute(tables.study.select()).all())


def test_a_full_disk_is_named_and_what_was_committed_stays(small_disk: Path) -> None:
    """The message names the file and the free bytes; earlier rows can still be read."""
    url = default_url(small_disk)
    message = workers.error_of(url, 10_000)
    assert message is not None
    assert f"disk is full: {small_disk}/vnuma.db, " in message
    (small_disk / "vnuma.db-journal").unlink(missing_ok=True)
    assert committed(url) > 10


def test_a_file_that_may_not_grow_is_an_error_and_loses_nothing(sqlite_url: str) -> None:
    """A file-size limit stops the write, not the store: it works afterwards."""
    open_store(sqlite_url)
    worker = workers.Worker(workers.write_with_file_limit, sqlite_url, 400_000)
    message = worker.answer()
    worker.end()
    assert message is not None
    assert "vnuma.db" in message
    before = committed(sqlite_url)
    assert before > 10
    with open_store(sqlite_url).write() as conn:
        runs.save_study(conn, "later", "a: 1\n")
    assert committed(sqlite_url) == before + 1


def test_a_store_that_stays_locked_is_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """After the limit waiting ends with an error, instead of lasting forever."""
    monkeypatch.setattr(open_module, "LOCK_WAIT_S", 1)
    monkeypatch.setattr(store_postgresql, "_SERVER", "-c lock_timeout=1s")
    impatient = open_store(url)
    with store.write() as conn:
        study = runs.save_study(conn, "quick", "a: 1\n")
        runs.create_run(conn, study, seed=1)
        with pytest.raises(StoreError, match="stayed locked"), impatient.write() as second:
            runs.create_run(second, study, seed=1)


def test_a_store_that_disappears_is_not_created_again(sqlite_url: str, tmp_path: Path) -> None:
    """A run whose store was deleted gets an error; it does not continue with an empty one."""
    store = open_store(sqlite_url)
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(StoreError, match="cannot be opened"), store.write() as conn:
        runs.save_study(conn, "quick", "a: 1\n")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    """A text file is refused and stays as it is."""
    (tmp_path / "vnuma.db").write_text("notes " * 500)
    with pytest.raises(StoreError, match="is not a SQLite database"):
        open_store(default_url(tmp_path))
    assert (tmp_path / "vnuma.db").read_text() == "notes " * 500


def test_a_damaged_file_is_named(sqlite_url: str, tmp_path: Path) -> None:
    """Pages overwritten behind the first are found when they are read."""
    store = open_store(sqlite_url)
    with store.write() as conn:
        for index in range(50):
            runs.save_study(conn, f"s{index}", "x" * 2000)
    path = tmp_path / "vnuma.db"
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    with pytest.raises(StoreError, match="is damaged"):
        open_store(sqlite_url)


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder that everybody may read and nobody but root may write."""
    folder = Path(tempfile.mkdtemp(prefix="vnuma-closed-"))
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.parametrize("existing", [True, False])
def test_a_folder_without_permission_is_named(closed_folder: Path, existing: bool) -> None:
    """Another user's store, or a folder that may not be written: where, and what to look at."""
    url = default_url(closed_folder)
    if existing:
        open_store(url)
        (closed_folder / "vnuma.db").chmod(0o444)
    closed_folder.chmod(0o555)
    worker = workers.Worker(workers.open_as_nobody, url)
    message = worker.answer()
    worker.end()
    assert message is not None
    assert f"The store {closed_folder}/vnuma.db cannot be" in message


def test_a_store_that_is_only_opened_is_not_called_created(tmp_path: Path) -> None:
    """A name that the system refuses."""
    url = default_url(tmp_path / ("x" * 300))

    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(url, create=False)


def test_a_store_that_another_process_is_recovering_is_waited_for() -> None:
    """SQLite refines its error codes: SQLITE_BUSY_RECOVERY is busy too."""
    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY_RECOVERY
    refusals: list[Exception] = []

    class Recovering(sqlite3.Connection):
        def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
            if refusals:
                raise refusals.pop()
            return super().cursor(factory)

    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(":memory:", factory=Recovering))
    engine.connect().close()  # SQLAlchemy asks something of its first connection
    refusals.append(busy)

    open_module._ensure_wal(engine)
    engine.dispose()

    assert not refusals


def test_a_reader_of_a_closed_folder_is_not_told_of_writing(closed_folder: Path) -> None:
    """SQLite creates files next to a store even for reading: the message names who may do so."""
    url = default_url(closed_folder)
    open_store(url)
    (closed_folder / "vnuma.db").chmod(0o444)
    closed_folder.chmod(0o555)
    worker = workers.Worker(workers.read_as_nobody, url)
    message = worker.answer()
    worker.end()
    assert message is not None
    assert f"The store {closed_folder}/vnuma.db cannot be read" in message


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("53100", "The store's disk is full: postgresql://"),
        ("53300", "takes no more connections"),
        ("40P01", "to end a deadlock"),
        ("40001", "another changed the same rows"),
        ("28P01", "refuses the login"),
        ("42501", "does not allow this user to do that"),
        ("25006", "is read-only"),
        ("57P01", "is shutting down or starting"),
        ("08006", "closed the connection"),
        ("XX001", "is damaged"),
        ("58030", "I/O error"),
        ("22012", "refused a statement"),
    ],
)
def test_what_postgresql_says_is_explained(postgresql: Cluster, state: str, told: str) -> None:
    """Each error condition of the server becomes a sentence and a next step."""
    store = open_store(postgresql.new_database())
    with pytest.raises(StoreError) as caught, store.write() as conn:
        conn.execute(text(f"DO $$ BEGIN RAISE EXCEPTION 'as reported' USING ERRCODE = '{state}'; END $$"))
    assert told in caught.value.what
    assert "as reported" in caught.value.what
    assert caught.value.fix


@pytest.mark.parametrize(
    "said",
    [
        "terminating connection due to administrator command",
        "terminating connection because of crash of another server process",
        "the database system is shutting down",
    ],
)
def test_a_server_that_stops_while_a_process_connects_is_waited_for(said: str) -> None:
    """The driver has no condition for a connection that was refused, only these words."""
    assert is_away(psycopg.OperationalError(f'connection to server on socket "/x" failed: FATAL:  {said}'))


@pytest.mark.parametrize(
    "said",
    [
        "sorry, too many clients already",
        "remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "remaining connection slots are reserved for non-replication superuser connections",
        'too many connections for database "store"',
        'too many connections for role "ops"',
        "no more connections allowed (max_client_conn)",
    ],
)
def test_a_server_without_a_free_connection_is_waited_for(said: str) -> None:
    """PostgreSQL 13 to 18 and PgBouncer: another session's end makes room."""
    assert is_away(psycopg.OperationalError(f'connection to server on socket "/x" failed: FATAL:  {said}'))


def test_a_unit_of_work_waits_until_a_connection_is_free(postgresql: Cluster) -> None:
    """All are taken: the store says what it waits for, and does the work once one is given back."""
    url = postgresql.new_store()
    store = open_store(url)
    store.disconnect()
    told: list[StoreError] = []
    with postgresql.crowd() as taken:

        def give_back(error: StoreError) -> None:
            told.append(error)
            taken.close()

        store.while_away(give_back)
        with store.write() as conn:
            runs.save_study(conn, "quick", "a: 1\n")

    assert told
    assert isinstance(told[0], StoreAway)
    assert committed(url) == 1


def test_connections_that_stay_taken_are_the_store_s_fault(
    postgresql: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its patience the unit of work fails, and the store is named."""
    monkeypatch.setattr(Patience, "LIMIT_S", 0.5)
    store = open_store(postgresql.new_store())
    store.disconnect()
    with postgresql.crowd(), pytest.raises(StoreAway) as caught, store.read():
        pass
    assert str(store.place) in caught.value.what


def test_a_command_that_waits_for_the_store_says_so_once(
    postgresql: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not each time that it tries."""
    monkeypatch.setattr(Patience, "LIMIT_S", 0.5)
    store = opened_store(postgresql.new_store())
    store.disconnect()
    with postgresql.crowd(), pytest.raises(StoreAway), store.read():
        pass
    assert capsys.readouterr().err.count("takes no more connections") == 1


@pytest.mark.parametrize("state", ["53100", "53200"])
def test_a_server_without_space_or_memory_needs_a_person(postgresql: Cluster, state: str) -> None:
    """Waiting does not help, so it is not treated as a server that is away."""
    store = open_store(postgresql.new_database())
    with pytest.raises(StoreUnwritable) as caught, store.write() as conn:
        conn.execute(text(f"DO $$ BEGIN RAISE EXCEPTION 'as reported' USING ERRCODE = '{state}'; END $$"))
    assert str(store.place) in caught.value.what


def test_a_missing_database_says_how_to_make_it(postgresql: Cluster) -> None:
    """The server answers, but has no such database."""
    url = postgresql.new_database().replace("/store", "/nowhere")
    with pytest.raises(StoreError, match="does not exist"):
        open_store(url)


def test_a_connection_that_breaks_is_a_store_error(postgresql: Cluster) -> None:
    """The server ends the session in the middle of a unit; nothing of it is kept."""
    url = postgresql.new_database()
    store = open_store(url)

    def write_across_the_break(conn: Connection) -> None:
        runs.save_study(conn, "quick", "a: 1\n")
        pid = conn.scalar(text("SELECT pg_backend_pid()"))
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        runs.save_study(conn, "quick", "a: 2\n")

    with pytest.raises(StoreError, match="is shutting down"), store.write() as conn:
        write_across_the_break(conn)
    assert committed(url) == 0


def test_a_fault_in_the_product_is_not_called_the_users(sqlite_url: str) -> None:
    """A statement that the database does not understand asks for a report."""
    store = open_store(sqlite_url)
    with pytest.raises(StoreError, match="refused a statement"), store.write() as conn:
        conn.execute(text("SELECT nonsense"))


def test_a_raw_driver_error_is_explained_too(sqlite_url: str) -> None:
    """Errors from below SQLAlchemy do not slip through."""
    store = open_store(sqlite_url)

    with pytest.raises(StoreError, match="refused a statement"), store.read() as conn:
        conn.connection.cursor().execute("SELECT nonsense")
