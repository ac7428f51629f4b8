"""TLS to a PostgreSQL server: verified by default, and required beyond this machine.

libpq's own default, `prefer`, falls back to plain text when a server, or somebody between, says so
(https://www.postgresql.org/docs/current/libpq-ssl.html).
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path

from sqlalchemy import URL

from vnuma.errors import StoreError

_MAY_BE_PLAIN = frozenset({"disable", "allow", "prefer"})
_SYSTEM_ROOTS = 160000
"""The first libpq that knows `sslrootcert=system`."""


def encryption(url: URL, environment: Mapping[str, str], home: Path, libpq: int) -> dict[str, str]:
    """What to add to the connection's settings: nothing for a server on this machine.

    `libpq` is its version as a number, such as 160004. Raises StoreError where a server on another machine
    is to be reached without TLS.
    """
    if all(map(_is_here, _hosts(url, environment))):
        return {}
    mode = _given("sslmode", url) or environment.get("PGSSLMODE")
    if mode in _MAY_BE_PLAIN:
        raise StoreError(
            f"The store's server is on another machine, and sslmode={mode} would send baselines and "
            "password unencrypted.",
            fix="Leave sslmode out: the server's certificate is then verified. Its CA: ?sslrootcert=FILE",
        )
    if mode is not None:
        return {}
    has_roots = _given("sslrootcert", url) or environment.get("PGSSLROOTCERT")
    if has_roots or libpq < _SYSTEM_ROOTS or (home / ".postgresql/root.crt").exists():
        return {"sslmode": "verify-full"}
    return {"sslmode": "verify-full", "sslrootcert": "system"}


def _hosts(url: URL, environment: Mapping[str, str]) -> list[str]:
    """Every host that may be connected to; a service file's are unknown, so they count as others."""
    if _given("service", url) or environment.get("PGSERVICE"):
        return ["a service's"]
    named = url.host or _given("host", url) or environment.get("PGHOST") or ""
    alone = named or _given("hostaddr", url) or environment.get("PGHOSTADDR") or ""
    return [part.rpartition(":")[0] if part.count(":") == 1 else part for part in alone.split(",")]


def _given(name: str, url: URL) -> str:
    value = url.query.get(name, "")
    return value if isinstance(value, str) else ",".join(value)


def _is_here(host: str) -> bool:
    if host in ("", "localhost") or host.startswith(("/", "@")):  # a Unix socket; @ is Linux's abstract one
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
