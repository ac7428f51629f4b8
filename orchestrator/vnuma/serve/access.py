"""Where the server may listen and who may read: only this machine, unless TLS and a token are set.

Browsers ask for the token themselves (HTTP Basic, RFC 7617: any user name, the token as the password);
programs may send it as a bearer token.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vnuma.errors import InputError, UsageError
from vnuma.store.encryption import is_loopback

LEAST_TOKEN = 16
"""Minimum length of a token: `openssl rand -hex 16` gives 32 characters."""

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"(?:([a-z0-9._-]+)|\[([0-9a-f:.]+)\])(?::([0-9]{1,5}))?", re.ASCII)
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Tls:
    """Certificate and key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Access:
    """The address, and the credentials that a reader needs."""

    host: str = "127.0.0.1"
    port: int = 0
    tls: Tls | None = None
    token: str | None = None

    def require_safe(self) -> None:
        """Raise UsageError for an address of others without TLS and a token, InputError for a file."""
        if self.token is not None and len(self.token) < LEAST_TOKEN:
            raise InputError(
                f"The token has {len(self.token)} characters, fewer than {LEAST_TOKEN}.",
                fix="Make one: openssl rand -hex 16",
            )
        for file in (self.tls.certificate, self.tls.key) if self.tls else ():
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
