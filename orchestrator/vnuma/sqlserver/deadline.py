"""A deadline for every statement, kept even when the server has stopped answering.

The drivers' own timeouts do not fire while rows are discarded. Cancelling from another thread is no
way out either: a frozen guest never confirms it, and FreeTDS 1.3 can lose the wake-up and wait for
ever. So the socket is shut down under the driver. That ends every call that waits on it, SQL Server
rolls the statement back when it sees its client gone, and the connection is not used again anyway.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from vnuma.sqlserver.odbc import pyodbc

STATEMENT_TIMEOUT_S = 600.0
"""For a statement that is not timed: enough to make or copy a large dataset's table."""

_ENDED = getattr(select, "POLLRDHUP", 0)
"""What Linux reports of a socket whose other side has ended it, even while bytes are left to read."""


@dataclass(frozen=True)
class _Link:
    """What is known of an open connection beside the driver: its sockets, by number and inode."""

    sockets: frozenset[tuple[int, int]]
    timeout_s: float


_links: dict[int, _Link] = {}
"""Connections that are open now, by identity: a pyodbc connection takes no attributes."""


def socket_numbers() -> frozenset[tuple[int, int]]:
    """This process' sockets. Empty where the system does not list them."""
    found = set()
    with suppress(OSError):
        for name in os.listdir("/dev/fd"):
            with suppress(OSError):  # the listing's own descriptor is closed by now
                status = os.fstat(int(name))
                if stat.S_ISSOCK(status.st_mode):
                    found.add((int(name), status.st_ino))
    return frozenset(found)


@contextmanager
def known(
    connection: pyodbc.Connection, sockets: frozenset[tuple[int, int]], timeout_s: float
) -> Iterator[None]:
    """Remember a connection's sockets and its statements' timeout while the block runs."""
    _links[id(connection)] = _Link(sockets, timeout_s)
    try:
        yield
    finally:
        del _links[id(connection)]


@contextmanager
def deadline(
    connection: pyodbc.Connection, cursor: pyodbc.Cursor, timeout_s: float | None = None
) -> Iterator[threading.Event]:
    """End the cursor's work after a time, and the connection with it; the event says whether that happened.

    An interrupted call may return without an exception: the event decides, not the driver. Without
    `timeout_s` the connection's own statement timeout counts.
    """
    link = _links.get(id(connection), _Link(frozenset(), STATEMENT_TIMEOUT_S))
    ended, passed = threading.Event(), threading.Event()

    def watch() -> None:
        if ended.wait(link.timeout_s if timeout_s is None else timeout_s):
            return
        passed.set()
        if link.sockets:
            _cut(link.sockets)
        else:  # a system that does not list its sockets
            with suppress(pyodbc.Error):  # the statement may just have ended by itself
                cursor.cancel()

    watcher = threading.Thread(target=watch, name="deadline", daemon=True)
    watcher.start()
    try:
        yield passed
    finally:
        ended.set()
        # The cursor must outlive a cancel, and the sockets' numbers must not be given away before.
        watcher.join()


def _cut(sockets: frozenset[tuple[int, int]]) -> None:
    """Shut the sockets down; one whose number was given to something else meanwhile is left alone."""
    for number, inode in sockets:
        with suppress(OSError):  # closed already
            if os.fstat(number).st_ino == inode:
                with socket.socket(fileno=os.dup(number)) as copy:
                    copy.shutdown(socket.SHUT_RDWR)


def is_cut(connection: pyodbc.Connection) -> bool:
    """Whether the other side has ended the connection, or the driver has closed its socket.

    False where the sockets are not known.
    """
    link = _links.get(id(connection))
    return link is not None and bool(link.sockets) and all(_is_dead(*one) for one in link.sockets)


def _is_dead(number: int, inode: int) -> bool:
    try:
        if os.fstat(number).st_ino != inode:
            return True
        poll = select.poll()
        poll.register(number, _ENDED)  # a reset and a hang-up are reported in any case
        return bool(poll.poll(0))
    except OSError:
        return True
