"""Addresses in Receptor's configuration: HOST:PORT, or [IPV6]:PORT."""

from __future__ import annotations

import re
from ipaddress import IPv6Address

from vnuma.errors import InputError

LAST_PORT = 65535

_ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[(?P<six>[0-9A-Fa-f:.]+)\]):(?P<port>[1-9]\d{0,4})")


def bind_host(host: str) -> str:
    """The address to listen on: all for a name, which may belong to a gateway."""
    return host if re.fullmatch(r"[\d.]+|\[.+\]", host) else "0.0.0.0"


def parse_address(text: str) -> tuple[str, int]:
    """Host and port; an IPv6 address keeps its brackets, as Receptor requires. Raises InputError."""
    found = _ADDRESS.fullmatch(text)
    if not found or int(found["port"]) > LAST_PORT or not _is_six(found["six"]):
        raise InputError(
            f"'{text}' is not a valid address.",
            fix=f"Give HOST:PORT, or [IPV6]:PORT; ports are 1 to {LAST_PORT}.",
        )
    return found["host"], int(found["port"])


def _is_six(text: str | None) -> bool:
    try:
        return text is None or bool(IPv6Address(text))
    except ValueError:
        return False
