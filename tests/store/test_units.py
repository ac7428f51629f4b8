"""Units of work that share a connection."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event, insert

from tests.store.build import new_run
from vnuma.errors import StoreError
from vnuma.store import runs, tables
from vnuma.store.open import Store, open_store
from vnuma.store.rows import StopRequest


@contextmanager
def opened(store: Store) -> Iterator[list[object]]:
    """Every connection that the store makes meanwhile."""

    made: list[object] = []
    engine = store._engine

    def note(connection: object, _record: object) -> None:
        made.append(connection)

    event.listen(engine, "connect", note)
    try:
        yield made
    finally:
        event.remove(engine, "connect", note)


def test_units_of_one_thread_share_a_connection_to_a_file(sqlite_url: str) -> None:
    """However many there are; what each wrote is there for every other process."""
    store = open_store(sqlite_url)
    with opened(store) as made, store.one_connection():
        run = new_run(store)
        with store.write() as connection:
            runs.request_stop(connection, run.id, StopRequest.NOW)
        with store.read() as connection:
            runs.get_run(connection, run.name)
        assert len(made) == 1
        with open_store(sqlite_url).read() as other:
            assert runs.get_run(other, run.name).stop_requested is StopRequest.NOW


def test_a_shared_connection_still_refuses_to_write_in_a_read_unit(store: Store) -> None:
    """Before a write unit and after one."""
    with store.one_connection():
        for name in ("first", "second"):
            with pytest.raises(StoreError), store.read() as connection:
                connection.execute(insert(tables.study), {"name": name, "yaml": "", "sha256": name})
            new_run(store)


def test_a_unit_inside_another_is_a_transaction_of_its_own(store: Store) -> None:
    """A reader inside a writer does not see what is not committed."""
    run = new_run(store)
    with store.one_connection(), store.write() as writer:
        runs.request_stop(writer, run.id, StopRequest.NOW)
        with store.read() as reader:
            assert runs.get_run(reader, run.name).stop_requested is None


def test_another_thread_has_a_connection_of_its_own(store: Store) -> None:
    """A play by hand says from a thread that it lives, while its step works."""
    run = new_run(store)

    def second() -> None:
        with store.write() as connection:
            runs.touch_supervisor(connection, run, pid=7, host="ctl1")

    with store.one_connection():
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        with store.read() as connection:
            assert runs.get_run(connection, run.name).supervisor_pid == 7


def test_a_unit_never_writes_into_a_file_that_has_lost_its_name(sqlite_url: str, tmp_path: Path) -> None:
    """Removed while a step works: the next unit says so, instead of writing where nobody finds it."""
    store = open_store(sqlite_url)
    run = new_run(store)
    with store.one_connection():
        shutil.move(store.place.path, tmp_path / "moved.db")
        with pytest.raises(StoreError), store.write() as connection:
            runs.request_stop(connection, run.id, StopRequest.NOW)
        os.replace(tmp_path / "moved.db", store.place.path)
    with store.read() as connection:
        assert runs.get_run(connection, run.name).stop_requested is None


def test_sharing_inside_sharing_ends_with_the_outer_one(sqlite_url: str) -> None:
    """The outer connection serves again once the inner one is closed."""
    store = open_store(sqlite_url)
    with opened(store) as made, store.one_connection():
        with store.one_connection():
            run = new_run(store)
        with store.read() as connection:
            runs.get_run(connection, run.name)
        assert len(made) == 2


def test_a_file_that_cannot_be_kept_open_is_a_store_error(sqlite_url: str) -> None:
    """As when it is damaged just after it was connected to."""
    store = open_store(sqlite_url)

    def damage(_connection: object, _record: object) -> None:
        store.place.path.write_text("notes " * 500)

    event.listen(store._engine, "connect", damage)

    with pytest.raises(StoreError), store.kept_open():
        pass
