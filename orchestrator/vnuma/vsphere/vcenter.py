"""The address of a vCenter or ESXi host, and the account that logs in there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields
from typing import Any

from vnuma.logins import Logins


@dataclass(frozen=True)
class VCenter:
    """Address and account. `timeout_s` limits one answer, in seconds; longer waits are split.

    The certificate is checked against `ca_file` (PEM) or, without one, the system's CAs, unless `verify_tls`
    is False. repr shows neither password nor token nor session.
    """

    host: str
    user: str = ""
    password: str = field(default="", repr=False)
    session: str = field(default="", repr=False)
    """The cookie of a session that somebody else opened: used instead of a login, and left open."""
    token: str = field(default="", repr=False)
    """A SAML bearer token to log in with instead of a password: XML, or base64 of it."""
    port: int = 443
    proxy: tuple[str, int] | None = None
    """Host and port of a proxy for HTTP CONNECT; None: direct."""
    ca_file: str | None = None
    verify_tls: bool = True
    api_version: str | None = None
    """The version from `agreed_version`; None asks the server at every connection."""
    timeout_s: float = 30.0
    logins: Logins | None = field(default=None, repr=False, compare=False)
    """Where the run's processes share sessions and refusals; None: each connection logs in and out."""

    @property
    def address(self) -> str:
        """Host and port, for messages."""
        return f"{self.host}:{self.port}"

    @property
    def account(self) -> str:
        """Server and user, or which token or session: the key for sessions and refusals. Contains
        no secret.
        """
        if self.user:
            return f"{self.address} {self.user}"
        kind, secret = ("token", self.token) if self.token else ("session", self.session)
        return f"{self.address} {kind} {hashlib.sha256(secret.strip().encode()).hexdigest()[:16]}"

    def without_secrets(self) -> dict[str, Any]:
        """What it takes to reach the server with an open session."""
        left_out = ("password", "session", "token", "logins")
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in left_out}
