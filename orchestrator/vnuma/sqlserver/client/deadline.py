"""A deadline for every statement, kept even when the server has stopped answering.

The drivers' own timeouts do not apply while rows are discarded. Cancelling from another thread does not work
either: a frozen guest never confirms it, and FreeTDS 1.3 can lose the wake-up and wait forever. So the socket
is shut down under the driver. That ends every call that waits on it, SQL Server rolls the statement back, and
the connection is not used again.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from vnuma.sqlserver.client.odbc import pyodbc

Sockets = frozenset[tuple[int, int]]
"""Number and inode of each, since a number alone may be reused."""

Address = tuple[str, int]
"""An IP address and a port."""


_ENDED = getattr(select, "POLLRDHUP", 0)
"""Linux's poll flags for a socket whose peer has closed it, even while bytes are left to read."""


def all_sockets() -> Sockets:
    """The open sockets; empty where the system does not list them."""
    found = set()
    with suppress(OSError):
        for name in os.listdir("/dev/fd"):
            with suppress(OSError):  # the listing's own descriptor is closed by now
                status = os.fstat(int(name))
                if stat.S_ISSOCK(status.st_mode):
                    found.add((int(name), status.st_ino))
    return frozenset(found)


def connected_to(addresses: Iterable[Address], *, since: Sockets) -> Sockets:
    """Sockets to one of the addresses that were opened after `since` was listed."""
    wanted = frozenset(addresses)
    return frozenset(one for one in all_sockets() - since if _peer(one) in wanted)


def still_open(sockets: Sockets) -> bool:
    """Whether all of them are unchanged."""
    return all(_inode(number) == inode for number, inode in sockets)


def has_ended(one: tuple[int, int]) -> bool:
    """Whether its peer has closed it, or it is closed here."""
    number, inode = one
    if _inode(number) != inode:
        return True
    poll = select.poll()
    poll.register(number, _ENDED)  # a reset and a hang-up are always reported
    return bool(poll.poll(0))


def shut_down(sockets: Sockets) -> None:
    """End every call that waits on one of them. Closed or reused ones are skipped."""
    for number, inode in sockets:
        with suppress(OSError), socket.socket(fileno=os.dup(number)) as copy:
            if os.fstat(copy.fileno()).st_ino == inode:
                copy.shutdown(socket.SHUT_RDWR)


def _peer(one: tuple[int, int]) -> Address | None:
    """The peer; None before there is a connection, and for anything but TCP."""
    number, inode = one
    with suppress(OSError), socket.socket(fileno=os.dup(number)) as copy:
        if copy.family in (socket.AF_INET, socket.AF_INET6) and os.fstat(copy.fileno()).st_ino == inode:
            host, port = copy.getpeername()[:2]
            return host.removeprefix("::ffff:"), port
    return None


def _inode(number: int) -> int | None:
    with suppress(OSError):
        return os.fstat(number).st_ino
    return None


STATEMENT_TIMEOUT_S = 600.0
"""Default for untimed statements, in seconds: enough to create or copy a large dataset's table."""


@dataclass(frozen=True)
class Link:
    """What is known about an open connection besides its driver."""

    where: str
    """Its server for messages; the driver's own name for it may be anything."""
    sockets: Sockets
    timeout_s: float


_links: dict[int, Link] = {}
"""Open connections by identity, since a pyodbc connection takes no attributes."""


@contextmanager
def known(connection: pyodbc.Connection, link: Link) -> Iterator[None]:
    """Remember a connection's link during the block."""
    _links[id(connection)] = link
    try:
        yield
    finally:
        del _links[id(connection)]


def where(connection: pyodbc.Connection) -> str:
    """The server's name, for messages."""
    link = _links.get(id(connection))
    return link.where if link else "SQL Server"


@contextmanager
def deadline(
    connection: pyodbc.Connection, cursor: pyodbc.Cursor, timeout_s: float | None = None
) -> Iterator[threading.Event]:
    """End the cursor's work and its connection after a time; the event says whether that happened.

    An interrupted call may return without an exception, so the event decides. Without `timeout_s` the
    connection's own statement timeout applies.
    """
    link = _links.get(id(connection), Link("", frozenset(), STATEMENT_TIMEOUT_S))
    ended, passed = threading.Event(), threading.Event()

    def watch() -> None:
        if ended.wait(link.timeout_s if timeout_s is None else timeout_s):
            return
        passed.set()
        if link.sockets:
            shut_down(link.sockets)
        else:  # a system that does not list its sockets
            with suppress(pyodbc.Error):  # the statement may have just ended by itself
                cursor.cancel()

    watcher = threading.Thread(target=watch, name="deadline", daemon=True)
    watcher.start()
    try:
        yield passed
    finally:
        ended.set()
        # The cursor must exist until a cancel ends, and the sockets' numbers must not be reused before.
        watcher.join()


def is_cut(connection: pyodbc.Connection) -> bool:
    """Whether the other side has closed the connection, or the driver its socket.

    False where the sockets are not known.
    """
    link = _links.get(id(connection))
    return link is not None and bool(link.sockets) and all(has_ended(one) for one in link.sockets)
