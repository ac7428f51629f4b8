"""TLS to a PostgreSQL server: verified by default, and required for other machines.

libpq's own default, `prefer`, falls back to plain text when the server, or an attacker, says so
(https://www.postgresql.org/docs/current/libpq-ssl.html).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

from sqlalchemy import URL
from sqlalchemy.exc import ArgumentError

from vnuma.errors import StoreError

_MAY_BE_PLAIN = frozenset({"disable", "allow", "prefer"})
_SYSTEM_ROOTS = 160000
"""The first libpq version with `sslrootcert=system`."""


def encryption(url: URL, environment: Mapping[str, str], home: Path, libpq: int) -> dict[str, str]:
    """TLS settings to add to the connection: none for a server on this machine.

    `libpq` is its version as a number, such as 160004. Raises StoreError for a server on another machine
    without TLS.
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
    """Every host and address that the driver may connect to.

    A `?host=` replaces the URL's own, and libpq connects to an address whatever the host name is
    (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-HOSTADDR). Hosts from a service
    file or a connection string in the URL are unknown, so they count as other machines.
    """
    if _given("service", url) or environment.get("PGSERVICE") or _given("conninfo", url):
        return ["unknown"]
    try:
        _, settings = url.get_dialect()().create_connect_args(url)
    except (ArgumentError, ValueError) as error:
        raise StoreError(
            f"The hosts and ports in the store's URL cannot be read ({error}).",
            fix="Several hosts: ?host=db1,db2&port=5432,5433",
        ) from error
    host = settings.get("host") or environment.get("PGHOST", "")
    return f"{host},{_given('hostaddr', url) or environment.get('PGHOSTADDR', '')}".split(",")


def _given(name: str, url: URL) -> str:
    value = url.query.get(name, "")
    return value if isinstance(value, str) else ",".join(value)


def _is_here(host: str) -> bool:
    # / begins a Unix socket, @ Linux's abstract one
    return host == "" or host.startswith(("/", "@")) or is_loopback(host)


def is_loopback(host: str) -> bool:
    """Whether a name or address means this machine, and only this machine reaches it."""
    with suppress(ValueError):
        return host == "localhost" or ip_address(host).is_loopback
    return False
