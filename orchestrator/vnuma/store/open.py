"""Open a store: check its place, upgrade its schema, and provide units of work."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Concatenate, Literal, ParamSpec, TypeVar

from sqlalchemy import URL, Connection, Engine, NullPool, Pool, StaticPool, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import OperationalError

from vnuma.errors import StoreError, write_fix
from vnuma.store.place import Place, default_url, parse_place, refuse_unsafe_sqlite
from vnuma.store.postgresql import (
    LOCK_WAIT_S,
    READ_ONLY,
    Patience,
    connect_in_children,
    explained,
    postgresql_engine,
    translated,
)
from vnuma.store.schema import needs_upgrade, no_store
from vnuma.store.tables import metadata

__all__ = ["Store", "default_url", "open_store"]

T = TypeVar("T")
P = ParamSpec("P")


class Store:
    """An open store. A child forked outside `one_connection` and `kept_open` may use it too.

    It never has a connection of its parent. On SQLite the store keeps no connection between units of work,
    on PostgreSQL one or two.
    """

    def __init__(self, place: Place, engine: Engine) -> None:
        self.place = place
        self._engine = engine
        self._own = threading.local()
        self._patience = Patience()

    def __repr__(self) -> str:
        return f"Store({str(self.place)!r})"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent snapshot; writes are refused. Raises StoreError on database errors."""
        with self._unit(vnuma_write=False) as conn:
            yield conn

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction, committed at the end, rolled back if the body raises.

        On SQLite it takes the write lock at once (BEGIN IMMEDIATE): a transaction that reads first and then
        writes fails as soon as another one wrote in between, whatever the timeout.
        """
        with self._unit(vnuma_write=True) as conn:
            yield conn

    def ask(self, question: Callable[Concatenate[Connection, P], T], *of: P.args, **more: P.kwargs) -> T:
        """The answer to a question of one SELECT, with its arguments. Raises StoreError on database errors.

        PostgreSQL needs no transaction for it: one round trip instead of three. A second statement would see
        another moment. It is asked again where the server went away.
        """
        if self.place.is_sqlite:
            with self.read() as conn:
                return question(conn, *of, **more)
        with translated(self.place):
            return self._patience.answer(self._engine, lambda conn: question(conn, *of, **more))

    def while_away(self, say: Callable[[StoreError], None]) -> None:
        """Have `say` called, several times a second, with why a unit of work waits for PostgreSQL."""

        def tell(error: OperationalError) -> None:
            say(explained(self.place, error.orig or error))

        self._patience.say = tell

    @contextmanager
    def waiting_at_most(self, seconds: float) -> Iterator[None]:
        """Let units of work wait for PostgreSQL only so long, for a caller that waits by itself."""
        before, self._patience.limit_s = self._patience.limit_s, seconds
        try:
            yield
        finally:
            self._patience.limit_s = before

    @contextmanager
    def one_connection(self) -> Iterator[None]:
        """Share one connection to a SQLite file among this thread's consecutive units of work.

        A new connection reads the file's schema again, ten times the work of a small unit. A child
        forked inside must not use the store.
        """
        if not self.place.is_sqlite:
            yield
            return
        with translated(self.place), self._engine.connect() as connection:
            before = getattr(self._own, "kept", (None, None))
            self._own.kept = connection, _identity(self.place)
            try:
                yield
            finally:
                self._own.kept = before

    @contextmanager
    def _unit(self, **options: object) -> Iterator[Connection]:
        """One transaction, on the thread's own connection unless that is in use.

        Also a new one if the path now names another file or none, since what is written must be found again
        under it.
        """
        own, file = getattr(self._own, "kept", (None, None))
        with translated(self.place), ExitStack() as unit:
            if not self.place.is_sqlite:
                conn = unit.enter_context(self._patience.transaction(self._engine, options))
            elif own and not own.in_transaction() and file == _identity(self.place):
                conn = own.execution_options(**options)
                unit.enter_context(conn.begin())
            else:
                conn = unit.enter_context(self._engine.connect().execution_options(**options))
                unit.enter_context(conn.begin())
            yield conn

    def connect_in_children(self) -> None:
        """Have each child that is forked from now on connect to PostgreSQL at once."""
        if not self.place.is_sqlite:
            connect_in_children(self._engine)

    def disconnect(self) -> None:
        """Close what is kept open to PostgreSQL; the next unit of work connects again."""
        self._engine.dispose()

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Keep SQLite's file open, without a transaction, while many processes come and go.

        The process that closes a SQLite file last removes its write-ahead log, and the next one creates it
        again: four file operations for each unit of work. A child forked inside must not use the store; an
        executed program does not inherit the file.
        """
        if not self.place.is_sqlite:
            yield
            return
        with translated(self.place):
            connection = self._engine.raw_connection()
        try:
            with translated(self.place):
                connection.cursor().execute("SELECT count(*) FROM sqlite_master").fetchone()
            yield
        finally:
            connection.close()


def _identity(place: Place) -> tuple[int, int] | None:
    """Which file the store's path names now; None for no file."""
    try:
        status = os.stat(place.path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def open_store(url: str, *, create: bool = True) -> Store:
    """Open the store at `url`, migrated to this version's schema.

    With `create=False` the store must exist. Raises StoreError for an unusable URL or place, a store of a
    newer version, or any database error.
    """
    place = parse_place(url)
    if place.is_sqlite:
        refuse_unsafe_sqlite(place.path)
        _prepare_file(place, create=create)
    engine = sqlite_engine(place) if place.is_sqlite else postgresql_engine(place)
    with translated(place):
        if needs_upgrade(engine, place, create=create):
            from vnuma.store.migrate import upgrade  # noqa: PLC0415 - Alembic loads slowly

            upgrade(engine, place)
        if place.is_sqlite:
            _ensure_wal(engine)
    return Store(place, engine)


def open_for_reading(url: str) -> Store:
    """Open an existing store so that the database itself refuses writes.

    Raises StoreError as `open_store` does, for a store that needs an upgrade first, and for a SQLite file in
    a folder that this user cannot write (https://sqlite.org/wal.html, read-only databases).
    """
    place = parse_place(url)
    if place.is_sqlite:
        refuse_unsafe_sqlite(place.path)
        _prepare_file(place, create=False)
    engine = sqlite_engine(place, mode="ro") if place.is_sqlite else postgresql_engine(place, READ_ONLY)
    with translated(place), _log_explained(place):
        if needs_upgrade(engine, place, create=False):
            raise StoreError(
                f"The store {place} has an older schema and can only be read.",
                fix="vnuma status upgrades it.",
            )
    return Store(place, engine)


@contextmanager
def _log_explained(place: Place) -> Iterator[None]:
    """Explain to a reader why an unwritable store matters to it."""
    try:
        yield
    except OperationalError as error:
        if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_READONLY:
            raise
        raise StoreError(
            f"The store {place} cannot be read: SQLite creates files for its write-ahead log next to "
            f"it, and this user may not write in {place.path.parent}.",
            fix="Run this as the store's owner: another user's files there can stop a run.",
        ) from error


def _prepare_file(place: Place, *, create: bool) -> None:
    try:
        if not create and not place.path.exists():
            raise no_store(place)
        if place.path.is_dir():
            raise StoreError(f"The store {place} is a folder.", fix=f"Name a file: {place}/vnuma.db")
        if create and not place.path.exists():
            place.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(place.path, os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(
            f"The store {place} cannot be {'created' if create else 'opened'} ({error.strerror}).",
            fix=write_fix(error, place.path.parent),
        ) from error


def sqlite_engine(place: Place, mode: Literal["rw", "ro"] = "rw") -> Engine:
    """An engine with autocommit in the driver and our own BEGIN, since the driver's comes too late.

    `mode=rw`: a store that disappears during a run is an error, not a new, empty store.
    """
    uri = f"{place.path.absolute().as_uri()}?mode={mode}"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, timeout=LOCK_WAIT_S, isolation_level=None)

    return _engine_of(connect, NullPool)


def _engine_of(connect: Callable[[], sqlite3.Connection], pool: type[Pool]) -> Engine:
    engine = create_engine("sqlite://", creator=connect, poolclass=pool, hide_parameters=True)
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin)
    return engine


def _set_pragmas(connection: DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _begin(conn: Connection) -> None:
    write = conn.get_execution_options().get("vnuma_write")
    if write is not None:
        conn.exec_driver_sql(f"PRAGMA query_only = {'OFF' if write else 'ON'}")
    conn.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _ensure_wal(engine: Engine) -> None:
    """Write-ahead log: readers never wait for a writer. The setting is stored in the file.

    SQLite's busy timeout does not cover this switch, so we wait here.
    """
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        connection = engine.raw_connection()
        try:
            (mode,) = connection.cursor().execute("PRAGMA journal_mode").fetchone()
            if mode != "wal":
                connection.cursor().execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        else:
            return
        finally:
            connection.close()
        time.sleep(0.02)


def private_store(name: str) -> Store:
    """An empty store in a temporary file that ends with this process; `name` stands for it in messages."""
    engine = _engine_of(
        lambda: sqlite3.connect("", isolation_level=None, check_same_thread=False), StaticPool
    )
    metadata.create_all(engine)
    return Store(Place(URL.create("sqlite", database=name)), engine)
