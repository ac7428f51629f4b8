"""This process's sockets: found by their peer, and shut down under a driver."""

from __future__ import annotations

import os
import select
import socket
import stat
from collections.abc import Iterable
from contextlib import suppress

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
