"""Where the server may listen and who may read: only this machine, unless TLS and a token are set."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from pathlib import Path

from vnuma.errors import InputError, UsageError
from vnuma.store.encryption import is_loopback

LEAST_TOKEN = 16
"""Minimum length of a token: `openssl rand -hex 16` gives 32 characters."""

COOKIE = "vnuma_reader"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_HOST = re.compile(r"(?:([a-z0-9._-]+)|\[([0-9a-f:.]+)\])(?::([0-9]{1,5}))?", re.ASCII)


@dataclass(frozen=True)
class Tls:
    """Certificate and key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Proxy:
    """A reverse proxy that authenticates readers and names them in a header. Only its address is trusted."""

    address: str
    header: str


@dataclass(frozen=True)
class Access:
    """The address, and the credentials that a reader needs."""

    host: str = "127.0.0.1"
    port: int = 0
    tls: Tls | None = None
    token: str | None = None
    proxy: Proxy | None = None
    writer: str | None = None
    """The token of those who may stop runs; None: nobody may here."""
    public_names: tuple[str, ...] = ()
    """Names by which readers know the server, besides its address."""

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def require_safe(self) -> None:
        """Raise UsageError for an address that others reach without TLS and credentials, InputError for a
        file.
        """
        for whose, token in (("token", self.token), ("writer's token", self.writer)):
            if token is not None and len(token) < LEAST_TOKEN:
                raise InputError(
                    f"The {whose} has {len(token)} characters, fewer than {LEAST_TOKEN}.",
                    fix="Make one: openssl rand -hex 16",
                )
        if self.writer is not None and self.writer == self.token:
            raise InputError(
                "Readers and writers have the same token.", fix="Make another: openssl rand -hex 16"
            )
        for file in (self.tls.certificate, self.tls.key) if self.tls else ():
            if not file.is_file():
                raise InputError(
                    f"{file} is not a file.", fix="Name PEM files: --certificate FILE --key FILE"
                )
        if self.loopback:
            return
        if self.tls is None or not (self.token or self.proxy):
            raise UsageError(
                f"{self.host} can be reached from other machines: TLS and a token are required.",
                fix="Give --certificate FILE --key FILE, and --token-file FILE (or --proxy with "
                "--user-header); or leave --host out and use: ssh -L 8765:127.0.0.1:8765 HOST",
            )

    def knows_host(self, header: str) -> bool:
        """Whether the name in a request's Host header is ours; False for an invalid one.

        A page of another site can lead a browser here under a name of its own (DNS rebinding). A token
        protects from that, but not a proxy's header, which such a page can send, even from the proxy's own
        machine.
        """
        name = _name_in(header)
        if name is None:
            return False
        ours = (*LOOPBACK_NAMES, self.host.lower(), *(public.lower() for public in self.public_names))
        return name in ours or (self.token is not None and self.proxy is None)

    def is_token(self, given: str) -> bool:
        """Whether that is the token, compared in constant time."""
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())

    def is_writer(self, given: str) -> bool:
        """Whether that is the writer's token, compared in constant time."""
        return self.writer is not None and hmac.compare_digest(given.encode(), self.writer.encode())

    def cookie(self) -> str:
        """What a browser stores instead of the token; it survives a restart of the server."""
        assert self.token is not None
        return hmac.new(self.token.encode(), b"vnuma serve, reader", hashlib.sha256).hexdigest()

    def is_cookie(self, given: str) -> bool:
        """Whether a browser has signed in."""
        return self.token is not None and hmac.compare_digest(given.encode(), self.cookie().encode())


def _name_in(header: str) -> str | None:
    """The name or address of a Host header, `NAME[:PORT]` (RFC 9110, 7.2); None if it is not one."""
    found = _HOST.fullmatch(header.lower())
    if found is None or int(found[3] or 0) > 65535:
        return None
    return found[1] or found[2]
