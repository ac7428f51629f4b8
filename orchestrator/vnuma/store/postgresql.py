"""The engine of a store on PostgreSQL: settings, kept connections, waiting for a server that restarts."""

from __future__ import annotations

import atexit
import os
import sys
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
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from vnuma.errors import StoreError
from vnuma.store.encryption import encryption
from vnuma.store.place import Place
from vnuma.store.translate import is_away

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
            fix=f"{sys.executable} -m pip install 'psycopg[binary]' (installed by pipx: pipx inject vnuma "
            "'psycopg[binary]')",
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
    from vnuma.store.bounded_connection import BEGIN_S, SILENCE_S  # noqa: PLC0415 - needs the driver

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
