"""Connections that cost nothing for long: a time limit for a request's headers, and a cap on their number.

Without these, clients that send half a request hold every file descriptor of the process.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from vnuma.domain.topology.picture import STYLE
from vnuma.errors import InputError, UsageError
from vnuma.report.page.page import hash_of
from vnuma.store.place import is_loopback

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

HEADERS_S = 10.0
"""Time limit for the headers of a request, after the TLS handshake, in seconds."""

RESERVED = 64
"""Descriptors that are left for the store, and for connections that are refused."""

MOST = 1000
"""Most connections at once."""


def most_connections() -> int:
    """The cap: below this process's limit of open files, which Windows does not have."""
    if resource is None:
        return MOST
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


LEAST_TOKEN = 16
"""Minimum length of a token: `openssl rand -hex 16` gives 32 characters."""

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"(?:([a-z0-9._-]+)|\[([0-9a-f:.]+)\])(?::([0-9]{1,5}))?", re.ASCII)
_HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'self' '{hash_of(STYLE)}'; script-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """The address, and the credentials that a reader needs."""

    host: str = "127.0.0.1"
    port: int = 0
    tls: tuple[Path, Path] | None = None
    """Certificate and key, as PEM files."""
    token: str | None = None

    def require_safe(self) -> None:
        """Raise UsageError for an address of others without TLS and a token, InputError for a file."""
        if self.token is not None and len(self.token) < LEAST_TOKEN:
            raise InputError(
                f"The token has {len(self.token)} characters, fewer than {LEAST_TOKEN}.",
                fix="Make one: openssl rand -hex 16",
            )
        for file in self.tls or ():
            if not file.is_file():
                raise InputError(
                    f"{file} is not a file.", fix="Name PEM files: --certificate FILE --key FILE"
                )
        if not is_loopback(self.host) and not (self.tls and self.token):
            raise UsageError(
                f"{self.host} can be reached from other machines: TLS and a token are required.",
                fix="Give --certificate FILE --key FILE --token-file FILE; or leave --host out and use: "
                "ssh -L 8765:127.0.0.1:8765 HOST",
            )

    def refusal(self, request: Request) -> Response | None:
        """Why a request gets no page; None if it does."""
        if not self._knows_host(",".join(request.headers.getlist("host"))):
            return PlainTextResponse("This server does not have that name. Use its address.\n", 421)
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("Read only.\n", 405, {"allow": "GET, HEAD"})
        if self.token is None or hmac.compare_digest(_credentials(request).encode(), self.token.encode()):
            return None
        asked = {"www-authenticate": 'Basic realm="vnuma: any user name, and the token as password"'}
        return PlainTextResponse("A token is required.\n", 401, asked)

    def _knows_host(self, header: str) -> bool:
        """Whether the name in a request's Host header is ours; False for an invalid one.

        A page of another site can lead a browser here under a name of its own (DNS rebinding). With a token
        every name is taken: the browser does not send it to another name.
        """
        found = _HOST.fullmatch(header.lower())
        if found is None or int(found[3] or 0) > 65535:
            return False
        return (found[1] or found[2]) in (*_LOOPBACK_NAMES, self.host.lower()) or self.token is not None


def _credentials(request: Request) -> str:
    """The token that a request carries; empty without one."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    match scheme.lower():
        case "bearer":
            return given.strip()
        case "basic":
            try:
                return b64decode(given.strip(), validate=True).decode().partition(":")[2]
            except ValueError:
                return ""
    return ""


class Guard:
    """Lets only readers through, and adds the common headers of all answers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass the request on."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._access.refusal(Request(scope)) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, guarded)
