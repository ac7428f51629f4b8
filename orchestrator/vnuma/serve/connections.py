"""Connections that cost nothing for long: a time limit for a request's headers, and a cap on their number.

Without these, clients that send half a request hold every file descriptor of the process.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADERS_S = 10.0
"""Time limit for the headers of a request, after the TLS handshake, in seconds."""

RESERVED = 64
"""Descriptors that are left for the store, and for connections that are refused."""

MOST = 1000
"""Most connections at once."""


def most_connections() -> int:
    """The cap: below this process's limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(8, min(MOST, soft - RESERVED))


class OneLineWhenFull(logging.Filter):
    """asyncio logs a traceback for each connection that finds no free descriptor: one line is enough."""

    _said = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Let other messages pass, and the first of these without its traceback."""
        if "out of system resource" not in record.getMessage():
            return True
        first, self._said = not self._said, True
        record.msg, record.args, record.exc_info = "No free descriptor: new connections wait.", (), None
        return first


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol, which has no time limit before the first request and no cap."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Refuse a connection beyond the cap; give others HEADERS_S to send a request's headers."""
        super().connection_made(transport)
        if len(self.connections) > most_connections():
            transport.abort()
            return
        self._deadline = self.loop.call_later(HEADERS_S, self._give_up)

    def data_received(self, data: bytes) -> None:
        """A request that has begun on a kept connection has the same limit."""
        if self._deadline is None and self._is_idle():
            self._deadline = self.loop.call_later(HEADERS_S, self._give_up)
        super().data_received(data)
        if not self._is_idle():
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _give_up(self) -> None:
        self._deadline = None
        if self._is_idle():
            self.transport.abort()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
