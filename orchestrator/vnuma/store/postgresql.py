"""The engine of a store on PostgreSQL: settings, kept connections, waiting for a server that restarts."""

from __future__ import annotations

import atexit
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from sqlalchemy import Connection, Engine, RootTransaction, create_engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from vnuma.errors import StoreAway, StoreBusy, StoreError, StoreUnwritable, adding
from vnuma.store.place import Place, encryption

T = TypeVar("T")

LOCK_WAIT_S = 30
"""How long a unit of work waits for another's lock before failing, in seconds."""

READ_ONLY = "-c default_transaction_read_only=on"

LONG_WORK = {"vnuma_long": True}
"""Execution options for migrations: the server may work for any time without a sign."""

_ALONE = {"vnuma_alone": True}
"""Execution options for one SELECT: without a transaction around it, so that it can be repeated."""

_CONNECT_WAIT_S = 10

_KEPT = 2
"""Connections that a process keeps between units of work: its own, and that of a thread beside it."""

_NOTICED = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""A peer that disappears is noticed within a minute, by libpq (seconds; ms) and, below, by the
server: else it would keep locks and a session for two hours
(https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-KEEPALIVES)."""

_SERVER = (
    f"-c lock_timeout={LOCK_WAIT_S}s -c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 "
    "-c tcp_keepalives_count=3"
)

_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '60s'"
"""A writer that is cut off or frozen must not keep its locks."""

_engines: WeakSet[Engine] = WeakSet()
_connecting: WeakKeyDictionary[Engine, Thread] = WeakKeyDictionary()
_for_children: WeakSet[Engine] = WeakSet()


def postgresql_engine(place: Place, options: str = "") -> Engine:
    """An engine that keeps a connection or two; `options` are the server's own.

    We send BEGIN as soon as there is a connection, so that a kept one that broke is noticed before use.
    Raises StoreError: no driver, or no TLS.
    """
    try:
        from psycopg import pq  # noqa: PLC0415 - an extra: SQLite's users need not have it
    except ImportError as error:
        raise StoreError(
            f"The driver for PostgreSQL is missing, so {place} cannot be opened ({error}).",
            fix=adding("psycopg[binary]"),
        ) from error
    given = place.url.query
    settings: dict[str, object] = {
        "connect_timeout": _CONNECT_WAIT_S,
        "application_name": "vnuma",
        "prepare_threshold": None,  # a pooler between may give each transaction another session
        **_NOTICED,
        **encryption(place.url, os.environ, Path.home(), pq.version()),
    }
    settings = {name: value for name, value in settings.items() if name not in given}
    settings["options"] = f"{given.get('options', '')} {_SERVER} {options}".strip()
    engine = create_engine(
        place.url,
        isolation_level="AUTOCOMMIT",
        pool_size=_KEPT,
        max_overflow=-1,
        pool_use_lifo=True,
        hide_parameters=True,
        connect_args=settings,
    )
    event.listen(engine, "do_connect", _connect)
    event.listen(engine, "begin", _begin)
    event.listen(engine, "handle_error", _leave_replica)
    _engines.add(engine)
    return engine


def _connect(_dialect: object, _record: object, arguments: list[Any], settings: dict[str, Any]) -> object:
    from vnuma.store.bounded_connection import BoundedConnection  # noqa: PLC0415 - needs the driver

    return BoundedConnection.connect(*arguments, **settings)


def _begin(conn: Connection) -> None:
    options = conn.get_execution_options()
    statement = {None: "BEGIN", True: _WRITE, False: _READ}[options.get("vnuma_write")]
    connection: Any = conn.connection.driver_connection
    connection.silence_s = BEGIN_S
    if options.get("vnuma_alone"):
        return
    conn.exec_driver_sql(statement, execution_options={"no_parameters": True})
    connection.silence_s = None if options.get("vnuma_long") else SILENCE_S


def _leave_replica(context: ExceptionContext) -> None:
    """Leave a server that became a replica: the next unit of work looks for the new primary."""
    if getattr(context.original_exception, "sqlstate", None) == "25006":
        context.is_disconnect = True


def close_kept() -> None:
    """Close what this process keeps open between units of work; the next unit connects anew."""
    for engine in list(_engines):
        if isinstance(engine.pool, QueuePool) and engine.pool.checkedin():
            engine.dispose()


def connect_in_children(engine: Engine) -> None:
    """Let each child that is forked from now on connect in a thread at once, before it needs the store.

    The children's own children do not: those of a workload, which call SQL Server, use no store.
    """
    _for_children.add(engine)


def _forget_kept() -> None:
    """In a forked child, leave the parent's connections to the parent.

    https://docs.sqlalchemy.org/en/20/core/pooling.html#pooling-multiprocessing
    """
    for engine in list(_engines):
        engine.dispose(close=False)
    _connecting.clear()
    ahead = list(_for_children)
    _for_children.clear()
    for engine in ahead:
        with suppress(RuntimeError):  # no thread available: the first unit of work connects
            thread = Thread(target=_connect_ahead, args=(engine,), daemon=True)
            thread.start()
            _connecting[engine] = thread


def _connect_ahead(engine: Engine) -> None:
    with suppress(SQLAlchemyError):  # the first unit of work tries again, and reports it
        engine.connect().close()


def _connection(engine: Engine) -> Connection:
    """The connection that is being made, or another one."""
    if connecting := _connecting.pop(engine, None):
        connecting.join()
    return engine.connect()


atexit.register(close_kept)
os.register_at_fork(after_in_child=_forget_kept)


@dataclass
class Patience:
    """Waits for a server that answered before and restarts or fails over now.

    Nothing was done yet, so trying again duplicates nothing. Time counts from the first failure; after the
    limit every unit of work fails at once until the server answers again. `say` gets each failure.
    """

    LIMIT_S: ClassVar[float] = 100.0
    """Less than the silence after which a supervisor counts as dead, by one heartbeat, in seconds."""

    _EVERY_S: ClassVar[float] = 0.25

    limit_s: float | None = None
    """Instead of LIMIT_S, while a caller waits by itself."""

    say: Callable[[OperationalError], None] = lambda _: None

    _away_since: float | None = None

    @contextmanager
    def transaction(self, engine: Engine, options: dict[str, Any]) -> Iterator[Connection]:
        """One transaction, which has begun on the server. Raises SQLAlchemy's error of the last try."""
        transaction = self._waiting(partial(_try_to_begin, engine, options))
        with transaction.connection as connection, transaction:
            yield connection

    def answer(self, engine: Engine, question: Callable[[Connection], T]) -> T:
        """The answer to one SELECT. Raises as `transaction` does."""
        return self._waiting(partial(_try_to_ask, engine, question))

    def _waiting(self, work: Callable[[], T]) -> T:
        while True:
            try:
                done = work()
            except OperationalError as error:
                if not is_away(error.orig or error):
                    raise
                now, since = time.monotonic(), self._away_since  # which another thread may reset
                if since is None:  # a connection that broke while it was kept: the next may do
                    self._away_since = now
                    continue
                if now - since >= (self.LIMIT_S if self.limit_s is None else self.limit_s):
                    raise
                self.say(error)
                time.sleep(self._EVERY_S)
            else:
                self._away_since = None
                return done


def _try_to_begin(engine: Engine, options: dict[str, Any]) -> RootTransaction:
    connection = _connection(engine)
    try:
        return connection.execution_options(**options).begin()
    except BaseException:
        connection.close()
        raise


def _try_to_ask(engine: Engine, question: Callable[[Connection], T]) -> T:
    with _connection(engine).execution_options(**_ALONE) as connection:
        return question(connection)


BEGIN_S = 10.0
"""How long the start of a transaction, which waits for nothing, may take: as long as a connection."""

SILENCE_S = 45.0
"""How long a server may send nothing while it works: longer than a unit of work waits for a lock."""

_RESUME = "then repeat the command, or continue a run that vnuma status lists: vnuma run --resume RUN"
_LOCKED = "stayed locked by another"
_REPORT = "This should not happen: please report it with this message."

_SQLITE: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: ("disk is full", f"Free some space there, {_RESUME}"),
    sqlite3.SQLITE_BUSY: (f"{_LOCKED} process", f"End what holds it, {_RESUME}"),
    sqlite3.SQLITE_LOCKED: (f"{_LOCKED} process", f"End what holds it, {_RESUME}"),
    sqlite3.SQLITE_CORRUPT: (
        "is damaged",
        "Restore it from a copy. Do not delete it: it holds VM baselines.",
    ),
    sqlite3.SQLITE_NOTADB: ("is not a SQLite database", "Name another file, or move that one away."),
    sqlite3.SQLITE_READONLY: (
        "cannot be written",
        "Check owner and mode of the file and its folder, and that its file system is not read-only.",
    ),
    sqlite3.SQLITE_PERM: ("may not be accessed", "Check the owner and mode of the file and its folder."),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Check that its folder exists and may be written."),
    sqlite3.SQLITE_IOERR: ("could not be read or written: I/O error", f"Check the disk, {_RESUME}"),
}

_POSTGRESQL: dict[str, tuple[str, str]] = {
    "53100": ("disk is full", f"Free some space on the server, {_RESUME}"),
    "53200": ("server is out of memory", f"Free some memory on the server, {_RESUME}"),
    "53300": ("takes no more connections", f"Raise max_connections or close some, {_RESUME}"),
    "55P03": (f"{_LOCKED} session", f"End what holds it, {_RESUME}"),
    "40P01": ("stopped this transaction to end a deadlock", "Run the command again."),
    "40001": ("stopped this transaction: another changed the same rows", "Run the command again."),
    "28": ("refuses the login", "Check the user and password (PGPASSWORD or ~/.pgpass)."),
    "3D000": ("does not have that database", "Create it: createdb DATABASE"),
    "42501": (
        "does not allow this user to do that",
        "Log in as a member of the store's role DATABASE_writer; for vnuma store init as superuser, or as a "
        "login with CREATEROLE that owns the database. Without roles: grant CREATE and USAGE on its schema.",
    ),
    "25006": ("is read-only", "Name the primary server, not a replica."),
    "57P": ("is shutting down or starting", f"Wait until it is available, {_RESUME}"),
    "08": ("closed the connection", f"Check the network and the server, {_RESUME}"),
    "XX001": ("is damaged", "Restore it from a backup. Do not delete it: it holds VM baselines."),
    "58": ("could not be read or written: I/O error", f"Check the server's disk, {_RESUME}"),
}

_FULL = ("53100", "53200")

_NO_CONNECTION_LEFT = (
    "too many clients",
    "too many connections",
    "connection slots are",
    "no more connections",
)
"""What PostgreSQL 13 to 18 and PgBouncer say to a connection too many (PostgreSQL's proc.c, postinit.c)."""


@contextmanager
def translated(place: Place) -> Iterator[None]:
    """Turn every database error inside into a StoreError that names the place."""
    try:
        yield
    except DBAPIError as error:
        raise explained(place, error.orig or error) from error
    except sqlite3.Error as error:
        raise explained(place, error) from error


def explained(place: Place, cause: BaseException) -> StoreError:
    """A database error as one that names the store and what to do next."""
    if isinstance(cause, sqlite3.Error):
        what, fix = _sqlite(place, cause)
        away = False
    else:
        what, fix = _postgresql(place, cause)
        away = is_away(cause)
    full = what.startswith("The store's")
    kind = StoreAway if away else StoreUnwritable if full else StoreBusy if _LOCKED in what else StoreError
    return kind(f"{what} ({_first_line(cause)}).", fix=fix)


def _sqlite(place: Place, cause: sqlite3.Error) -> tuple[str, str]:
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CONSTRAINT:
        return f"The store {place} refused a row that violates its rules", _REPORT
    if code not in _SQLITE:
        return f"The store {place} refused a statement", _REPORT
    what, fix = _SQLITE[code]
    if code == sqlite3.SQLITE_FULL:
        return f"The store's {what}: {place}, {_free(place.path)}; what was committed is safe", fix
    return f"The store {place} {what}", fix


def _postgresql(place: Place, cause: BaseException) -> tuple[str, str]:
    state = getattr(cause, "sqlstate", None) or _state_of_refusal(str(cause))
    if state is None and _is_about_tls(str(cause)):
        return (
            f"No verified TLS connection to the store {place}",
            "Name its CA (?sslrootcert=FILE), and as host a name in its certificate. TLS on the server: "
            "ssl = on.",
        )
    if state is None:
        return f"The store {place} does not answer", "Check host and port, and that the server is running."
    if state.startswith("23"):
        return f"The store {place} refused a row that violates its rules", _REPORT
    for prefix in (state, state[:3], state[:2]):
        if prefix in _POSTGRESQL:
            what, fix = _POSTGRESQL[prefix]
            return (f"The store's {what}: {place}" if prefix in _FULL else f"The store {place} {what}"), fix
    return f"The store {place} refused a statement", _REPORT


def is_away(cause: BaseException) -> bool:
    """Whether the server is unreachable, starting, stopping or out of connections, or lost the connection."""
    message = str(cause)
    state = getattr(cause, "sqlstate", None) or _state_of_refusal(message)
    if state is None:
        return "FATAL:" not in message and not _is_about_tls(message)
    return state.startswith(("57P", "08", "53300"))


def _is_about_tls(message: str) -> bool:
    return "certificate" in message or "does not support SSL" in message


def _state_of_refusal(message: str) -> str | None:
    """For a refused or broken connection the driver gives no SQLSTATE, only a message."""
    if any(words in message for words in _NO_CONNECTION_LEFT):
        return "53300"
    if 'FATAL:  database "' in message:
        return "3D000"
    if "the database system is" in message:  # starting up, shutting down, in recovery mode
        return "57P03"
    if "FATAL:  terminating connection" in message:  # the server began to stop while this one connected
        return "57P01"
    if "authentication failed" in message or "no password supplied" in message:
        return "28P01"
    if "server closed the connection" in message or "connection is closed" in message:
        return "08006"
    return None


def _first_line(cause: BaseException) -> str:
    lines = str(cause).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(cause).__name__


def _free(path: Path) -> str:
    try:
        return f"{shutil.disk_usage(path.parent).free:,} bytes free"
    except OSError:
        return "free space unknown"
