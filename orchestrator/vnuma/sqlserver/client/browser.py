"""Ask SQL Server Browser for a named instance's TCP port, which may change at each start.

Protocol: https://learn.microsoft.com/openspecs/windows_protocols/mc-sqlr. The answer is not authenticated;
the server at that port must then prove its identity.
"""

from __future__ import annotations

import re
import socket
import time
from contextlib import suppress

from vnuma.errors import SqlUnreachable

PORT = 1434
_ASK_INSTANCE, _ANSWER = 0x04, 0x05
_LARGEST = 4096
_AGAIN_S = 0.5
"""Interval for asking again, since a datagram may be lost."""
_GIVE_PORT = "Open UDP 1434, or give the instance a fixed port and write vnuma_sql.port instead of instance."


def port_of(host: str, instance: str, timeout_s: float) -> int:
    """The present port of an instance. Raises SqlUnreachable if it is unknown."""
    where = f"{host}\\{instance}"
    question = bytes([_ASK_INSTANCE]) + instance.encode("ascii") + b"\0"
    until = time.monotonic() + timeout_s
    try:
        (family, kind, protocol, _name, address), *_ = socket.getaddrinfo(host, PORT, type=socket.SOCK_DGRAM)
        with socket.socket(family, kind, protocol) as link:
            link.connect(address)
            while (left := until - time.monotonic()) > 0:
                link.settimeout(min(left, _AGAIN_S))
                with suppress(TimeoutError):
                    link.send(question)
                    return _port(link.recv(_LARGEST), where)
    except ConnectionRefusedError:
        pass  # nobody listens there
    except (socket.gaierror, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a valid name"
        raise SqlUnreachable(f"{where}: the name cannot be resolved here ({why}).") from error
    except OSError as error:
        raise SqlUnreachable(
            f"{where}: UDP {PORT} cannot be reached from here ({error.strerror}).", fix=_GIVE_PORT
        ) from error
    raise SqlUnreachable(
        f"{where}: SQL Server Browser (UDP {PORT}) does not return the instance's port.",
        fix=f"Start the service SQL Server Browser, and check the instance's name. {_GIVE_PORT}",
    )


def _port(answer: bytes, where: str) -> int:
    """The port in an answer. Raises SqlUnreachable without one."""
    text = answer[3:].decode("latin-1") if answer[:1] == bytes([_ANSWER]) else ""
    words = text.split(";")
    facts = dict(zip(words[::2], words[1::2], strict=False))
    port = facts.get("tcp", "")
    if re.fullmatch(r"[0-9]{1,5}", port) and 0 < int(port) < 65536:
        return int(port)
    raise SqlUnreachable(
        f"{where}: SQL Server Browser returns no TCP port for the instance.",
        fix=(
            "Check that it is started, and that TCP/IP is enabled for it (SQL Server Configuration Manager)."
        ),
    )
