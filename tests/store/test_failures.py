"""A store that fails: full, locked, damaged, forbidden. Each says what, where and what next."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
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
    assert f"full: {small_disk}/vnuma.db" in message
    (small_disk / "vnuma.db-journal").unlink(missing_ok=True)
    assert committed(url) > 10


def test_a_file_that_may_not_grow_is_an_error_and_loses_nothing(sqlite_url: str) -> None:
    """A file-size limit stops the write, not the store: it works afterwards."""
    open_store(sqlite_url)
    worker = workers.Worker(workers.write_with_file_limit, sqlite_url, 400_000)
    assert worker.answer() is not None
    worker.end()
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
        with pytest.raises(StoreError), impatient.write() as second:
            runs.create_run(second, study, seed=1)


def test_a_store_that_disappears_is_not_created_again(sqlite_url: str, tmp_path: Path) -> None:
    """A run whose store was deleted gets an error; it does not continue with an empty one."""
    store = open_store(sqlite_url)
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(StoreError), store.write() as conn:
        runs.save_study(conn, "quick", "a: 1\n")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StoreError):  # a name that the system refuses
        open_store(default_url(tmp_path / ("x" * 300)), create=False)


def test_a_damaged_file_and_one_that_is_no_database_are_refused(sqlite_url: str, tmp_path: Path) -> None:
    """Pages overwritten behind the first are found when they are read; no text is overwritten."""
    notes = tmp_path / "other" / "vnuma.db"
    notes.parent.mkdir()
    notes.write_text("notes " * 500)
    with pytest.raises(StoreError):
        open_store(default_url(notes.parent))
    assert notes.read_text() == "notes " * 500
    store = open_store(sqlite_url)
    with store.write() as conn:
        for index in range(50):
            runs.save_study(conn, f"s{index}", "x" * 2000)
    path = tmp_path / "vnuma.db"
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    with pytest.raises(StoreError):
        open_store(sqlite_url)


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder that everybody may read and nobody but root may write."""
    folder = Path(tempfile.mkdtemp(prefix="vnuma-closed-"))
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("existing", "work", "verb"),
    [
        (True, workers.open_as_nobody, "cannot be"),
        (False, workers.open_as_nobody, "cannot be"),
        (True, workers.read_as_nobody, "cannot be read"),  # SQLite makes files beside it even for reading
    ],
)
def test_a_folder_without_permission_is_named(
    closed_folder: Path, existing: bool, work: Callable[..., None], verb: str
) -> None:
    """Another user's store, or a folder that may not be written: where, and what to look at."""
    url = default_url(closed_folder)
    if existing:
        open_store(url)
        (closed_folder / "vnuma.db").chmod(0o444)
    closed_folder.chmod(0o555)
    worker = workers.Worker(work, url)
    message = worker.answer()
    worker.end()
    assert f"The store {closed_folder}/vnuma.db {verb}" in str(message)


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


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("53100", StoreUnwritable),  # space, and memory: waiting does not help
        ("53200", StoreUnwritable),
        *((state, StoreAway) for state in ("53300", "57P01", "08006")),
        *(
            (state, StoreError)
            for state in ("40P01", "40001", "28P01", "42501", "25006", "XX001", "58030", "22012")
        ),
    ],
)
def test_what_postgresql_says_is_explained(
    postgresql_store: Store, state: str, kind: type[StoreError]
) -> None:
    """Each error condition of the server becomes a sentence and a next step."""
    with pytest.raises(kind) as caught, postgresql_store.write() as conn:
        conn.execute(text(f"DO $$ BEGIN RAISE EXCEPTION 'as reported' USING ERRCODE = '{state}'; END $$"))
    assert issubclass(kind, type(caught.value))
    assert caught.value.fix


@pytest.fixture(scope="module")
def postgresql_store(postgresql: Cluster) -> Store:
    """One for tests that write nothing."""
    url = postgresql.new_store()
    with pytest.raises(StoreError):
        open_store(url.replace("/store", "/nowhere"))
    return open_store(url)


@pytest.mark.parametrize(
    "said",
    [
        "terminating connection due to administrator command",
        "terminating connection because of crash of another server process",
        "the database system is shutting down",
        "sorry, too many clients already",
        "remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "remaining connection slots are reserved for non-replication superuser connections",
        'too many connections for database "store"',
        'too many connections for role "ops"',
        "no more connections allowed (max_client_conn)",
    ],
)
def test_a_server_that_stops_or_has_no_free_connection_is_waited_for(said: str) -> None:
    """PostgreSQL 13 to 18 and PgBouncer. The driver has no condition for a refused connection."""
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
    postgresql: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After its patience the unit of work fails. A command that waits says so once."""
    monkeypatch.setattr(Patience, "LIMIT_S", 0.5)
    store = opened_store(postgresql.new_store())
    store.disconnect()
    with postgresql.crowd(), pytest.raises(StoreAway), store.read():
        pass
    assert capsys.readouterr().err.count("takes no more connections") == 1


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

    with pytest.raises(StoreAway), store.write() as conn:
        write_across_the_break(conn)
    assert committed(url) == 0


def test_a_fault_in_the_product_is_not_called_the_users(sqlite_url: str) -> None:
    """A statement that the database does not understand asks for a report."""
    store = open_store(sqlite_url)
    with pytest.raises(StoreError), store.write() as conn:
        conn.execute(text("SELECT nonsense"))
    with pytest.raises(StoreError), store.read() as conn:  # from below SQLAlchemy
        conn.connection.cursor().execute("SELECT nonsense")
