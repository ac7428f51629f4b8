"""Free ports of loopback."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

_PRIVILEGED, _EPHEMERAL = 1024, 32768
"""Linux gives ports from the second on to outgoing connections (ip(7), ip_local_port_range)."""


def free_port() -> int:
    """A port that nobody listens on now, and that no outgoing connection is given meanwhile."""
    for _ in range(100):
        port = secrets.randbelow(_EPHEMERAL - _PRIVILEGED) + _PRIVILEGED
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port on loopback")
