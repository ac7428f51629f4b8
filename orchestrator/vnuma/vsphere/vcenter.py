"""Where a vCenter or ESXi host is, and who logs in there."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class VCenter:
    """Address and account. `timeout_s` bounds one answer, in seconds; long waits are sliced below it.

    The certificate is checked against `ca_file` (PEM) or, without one, the system's CAs, unless
    `verify_tls` is False. The password never shows in repr.
    """

    host: str
    user: str
    password: str = field(repr=False)
    port: int = 443
    ca_file: str | None = None
    verify_tls: bool = True
    api_version: str | None = None
    """What `agreed_version` said before; None asks the server at every connection."""
    timeout_s: float = 30.0

    @property
    def address(self) -> str:
        """Host and port, as messages name them."""
        return f"{self.host}:{self.port}"
