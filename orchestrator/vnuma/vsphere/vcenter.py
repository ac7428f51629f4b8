"""Where a vCenter or ESXi host is, and who logs in there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields
from typing import Any

from vnuma.logins import Logins


@dataclass(frozen=True)
class VCenter:
    """Address and account. `timeout_s` bounds one answer, in seconds; long waits are sliced below it.

    The certificate is checked against `ca_file` (PEM) or, without one, the system's CAs, unless
    `verify_tls` is False. Neither password nor token nor session shows in repr.
    """

    host: str
    user: str = ""
    password: str = field(default="", repr=False)
    session: str = field(default="", repr=False)
    """The cookie of a session that somebody else has opened: used instead of a login, and left open."""
    token: str = field(default="", repr=False)
    """A SAML bearer token to log in with instead of a password: XML, or base64 of it."""
    port: int = 443
    proxy: tuple[str, int] | None = None
    """Host and port of a proxy that connects by HTTP CONNECT; None: directly."""
    ca_file: str | None = None
    verify_tls: bool = True
    api_version: str | None = None
    """What `agreed_version` said before; None asks the server at every connection."""
    timeout_s: float = 30.0
    logins: Logins | None = field(default=None, repr=False, compare=False)
    """Where the run's processes share sessions and refusals; None: each connection logs in and out."""

    @property
    def address(self) -> str:
        """Host and port, as messages name them."""
        return f"{self.host}:{self.port}"

    @property
    def account(self) -> str:
        """Server and user, or which token or session, as sessions and refusals are remembered: no secret."""
        if self.user:
            return f"{self.address} {self.user}"
        kind, secret = ("token", self.token) if self.token else ("session", self.session)
        return f"{self.address} {kind} {hashlib.sha256(secret.strip().encode()).hexdigest()[:16]}"

    def without_secrets(self) -> dict[str, Any]:
        """What it takes to reach the server with a session that is open already."""
        left_out = ("password", "session", "token", "logins")
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in left_out}
