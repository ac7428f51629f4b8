"""The connection to PostgreSQL that a process keeps between its units of work."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from tests.support.frozen_link import FrozenLink
from tests.support.postgresql import Cluster, database_of
from vnuma.errors import StoreAway, StoreError
from vnuma.store import postgresql as store_postgresql
from vnuma.store import runs
from vnuma.store.open import Store, open_store
from vnuma.store.place import parse_place
from vnuma.store.postgresql import LONG_WORK, Patience, close_kept, postgresql_engine


@pytest.fixture
def url(postgresql: Cluster) -> str:
    """An empty store's."""
    return postgresql.new_store()


@pytest.fixture
def store(url: str) -> Store:
    """An open, empty store."""
    return open_store(url)


@pytest.fixture
def link(postgresql: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FrozenLink]:
    """A link that can freeze, and a patience that ends soon."""
    monkeypatch.setattr(store_postgresql, "BEGIN_S", 1.0)
    monkeypatch.setattr(store_postgresql, "SILENCE_S", 1.0)
    monkeypatch.setattr(Patience, "LIMIT_S", 0.5)
    with FrozenLink(tmp_path, postgresql.folder) as link:
        yield link
        close_kept()


@pytest.fixture
def linked(link: FrozenLink, url: str, postgresql: Cluster, tmp_path: Path) -> Store:
    """The store through that link."""
    return open_store(url.replace(str(postgresql.folder), str(tmp_path)) + "&connect_timeout=2")


def session_of(store: Store) -> int:
    """The server process that a unit of work is done by."""
    with store.read() as conn:
        return int(conn.scalar(text("SELECT pg_backend_pid()")) or 0)


def states(postgresql: Cluster, url: str) -> list[str]:
    """What the server says of each session in that database."""
    query = "SELECT state FROM pg_stat_activity WHERE datname = %s"
    return [state for (state,) in postgresql.ask(query, database_of(url))]


def test_units_of_work_share_a_session(store: Store) -> None:
    """Whether they read or write."""
    first = session_of(store)
    with store.write() as conn:
        runs.save_study(conn, "quick", "a: 1\n")

    assert session_of(store) == first


def test_a_unit_that_fails_leaves_no_transaction_open(postgresql: Cluster, url: str, store: Store) -> None:
    """In the server's own words."""

    def fail(_conn: Connection) -> None:
        raise KeyError("quick")

    for unit in (store.read, store.write):
        with pytest.raises(KeyError), unit() as conn:
            fail(conn)
        assert states(postgresql, url) == ["idle"]


def test_a_forked_child_has_a_session_of_its_own(store: Store) -> None:
    """Its parent's connection keeps working, however the child ends."""
    parents = session_of(store)
    for end in (_end_in_order, os._exit):
        ours, theirs = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(target=_work, args=(store, theirs, end))
        child.start()
        assert ours.recv() not in {parents, 0}
        child.join()
        assert session_of(store) == parents


def test_a_child_connects_before_it_asks_and_uses_that_session(
    postgresql: Cluster, url: str, store: Store
) -> None:
    """And makes no second one; its parent has none."""
    store.connect_in_children()
    store.disconnect()
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_sessions, args=(store, theirs))
    child.start()

    until = time.monotonic() + 60
    while "idle" not in states(postgresql, url) and time.monotonic() < until:
        time.sleep(0.02)
    before = len(states(postgresql, url))
    ours.send("ask")
    own, seen = ours.recv()
    child.join()

    assert (before, seen) == (1, [own])


def test_a_child_of_a_child_connects_only_when_it_asks(store: Store) -> None:
    """A workload's processes call SQL Server while a time is taken."""
    store.connect_in_children()
    fork = multiprocessing.get_context("fork")
    ours, theirs = multiprocessing.Pipe()
    child = fork.Process(target=_fork_again, args=(fork, theirs))
    child.start()

    assert ours.recv() == 0
    child.join()


def test_a_child_that_cannot_connect_ahead_says_so_when_it_asks(tmp_path: Path) -> None:
    """Its first unit of work tries again."""
    place = parse_place(f"postgresql://nobody@/none?host={tmp_path}")
    store = Store(place, postgresql_engine(place))
    store.connect_in_children()
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_failure, args=(store, theirs))
    child.start()

    assert ours.recv() == "StoreAway"
    child.join()


def _sessions(store: Store, pipe: Any) -> None:
    pipe.recv()
    query = text("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
    pipe.send((session_of(store), store.ask(lambda conn: list(conn.scalars(query)))))


def _fork_again(fork: Any, pipe: Any) -> None:
    own = fork.Process(target=lambda: pipe.send(len(store_postgresql._connecting)))
    own.start()
    own.join()


def _failure(store: Store, pipe: Any) -> None:
    Patience.LIMIT_S = 0.0
    try:
        session_of(store)
    except StoreError as error:
        pipe.send(type(error).__name__)


def _work(store: Store, pipe: Any, end: Any) -> None:
    pipe.send(session_of(store))
    end(0)


def _end_in_order(_code: int) -> None:
    close_kept()


def test_a_session_that_ended_between_two_units_costs_none(
    postgresql: Cluster, url: str, store: Store
) -> None:
    """The server was restarted, or an administrator ended it: the next unit has another."""
    ended = session_of(store)
    postgresql.execute(url, f"SELECT pg_terminate_backend({ended}, 5000)")

    with store.write() as conn:
        runs.save_study(conn, "quick", "a: 1\n")

    assert session_of(store) != ended


def test_a_link_that_is_cut_inside_a_unit_ends_it(link: FrozenLink, linked: Store, store: Store) -> None:
    """No answer comes, and the connection stays open: the unit fails, and nothing of it is kept."""

    def write_into_the_void(conn: Connection) -> None:
        runs.save_study(conn, "quick", "a: 1\n")
        link.freeze()
        runs.save_study(conn, "quick", "a: 2\n")

    with pytest.raises(StoreAway), linked.write() as conn:
        write_into_the_void(conn)
    with store.read() as conn:
        assert conn.scalar(text("SELECT count(*) FROM study")) == 0


def test_a_link_that_was_cut_and_healed_between_two_units_costs_none(link: FrozenLink, linked: Store) -> None:
    """The connection that was kept is dead, and nobody said so."""
    before = session_of(linked)
    link.freeze()
    link.heal()

    assert session_of(linked) != before
    before = session_of(linked)
    link.freeze()
    link.heal()

    assert linked.ask(lambda conn: conn.scalar(text("SELECT pg_backend_pid()"))) not in {before, None}


def test_a_question_of_one_select_needs_no_transaction(store: Store) -> None:
    """A transaction that began with a statement of its own began before the question."""
    alone = text("SELECT transaction_timestamp() = statement_timestamp()")

    assert store.ask(lambda conn: conn.scalar(alone)) is True
    with store.read() as conn:
        assert conn.scalar(alone) is False


def test_a_link_that_stays_cut_ends_question_and_unit(link: FrozenLink, linked: Store) -> None:
    """After the wait for a server that restarts."""
    session_of(linked)
    link.freeze()

    with pytest.raises(StoreAway):
        linked.ask(lambda conn: conn.scalar(text("SELECT 1")))
    with pytest.raises(StoreAway):
        session_of(linked)


def test_another_thread_s_success_while_a_unit_gives_up_is_no_bug(tmp_path: Path) -> None:
    """A heartbeat found the server just after the unit's last try: the unit fails with the server's error."""
    said: list[float | None] = [None, -Patience.LIMIT_S]

    class Shared(Patience):
        @property
        def _away_since(self) -> float | None:
            return said.pop() if said else None

        @_away_since.setter
        def _away_since(self, at: float | None) -> None:
            pass

    engine = postgresql_engine(parse_place(f"postgresql://nobody@/none?host={tmp_path}"))

    with pytest.raises(OperationalError), Shared().transaction(engine, {}):
        pass


def test_a_migration_may_take_longer_than_a_unit(linked: Store) -> None:
    """The server is at work, and silent."""
    slow = text("SELECT pg_sleep(2)")
    with linked._engine.connect().execution_options(**LONG_WORK) as conn, conn.begin():
        conn.execute(slow)
    with pytest.raises(StoreAway), linked.read() as conn:
        conn.execute(slow)


def test_a_server_that_became_a_replica_is_left(store: Store) -> None:
    """It keeps its sessions, and refuses each write: the next unit looks for the new primary."""
    with store.write() as conn:
        conn.execute(text("SET default_transaction_read_only = on"))
    before = session_of(store)
    with pytest.raises(StoreError), store.write() as conn:
        runs.save_study(conn, "quick", "a: 1\n")

    with store.write() as conn:
        runs.save_study(conn, "quick", "a: 1\n")

    assert session_of(store) != before


def test_a_writer_that_is_frozen_loses_its_locks(store: Store) -> None:
    """The server ends its transaction; a reader holds none that matters, and may take its time."""
    shown = text("SHOW idle_in_transaction_session_timeout")
    with store.write() as conn:
        assert conn.scalar(shown) == "1min"
    with store.read() as conn:
        assert conn.scalar(shown) == "0"
