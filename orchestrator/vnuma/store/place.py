"""A store's place: check its URL, mask its secrets, and refuse unsafe places for SQLite."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from vnuma.errors import StoreError

MOUNTS = Path("/proc/mounts")
POSTGRESQL_FORM = "postgresql://USER@HOST/DATABASE"

_NETWORK_TYPES = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "ceph", "lustre", "gpfs"),
        *("beegfs", "glusterfs", "pvfs2", "9p", "drvfs", "davfs"),
    }
)
_SECRET_KEYS = frozenset({"password", "passfile", "sslpassword"})
_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


@dataclass(frozen=True)
class Place:
    """A checked store URL. `str()` and `repr()` never show the password."""

    url: URL

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file on this machine rather than a PostgreSQL server."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def path(self) -> Path:
        """The file of a SQLite store."""
        return Path(self.url.database or "")

    def __str__(self) -> str:
        return str(self.path) if self.is_sqlite else _masked(self.url)

    def __repr__(self) -> str:
        return f"Place({str(self)!r})"


def default_url(home: Path) -> str:
    """The SQLite store in `home`, as a URL."""
    url = URL.create("sqlite", database=str(home.absolute() / "vnuma.db"))
    return url.render_as_string(hide_password=False)


def parse_place(text: str) -> Place:
    """Parse a store URL: SQLite in a file, or PostgreSQL. Raises StoreError, with secrets masked."""
    try:
        url = make_url(text)
        driver = _DRIVERS.get(url.drivername)
    except (ArgumentError, ValueError):
        raise StoreError(
            f"The store URL '{mask_text(text)}' cannot be read.",
            fix=f"Use sqlite:///PATH or {POSTGRESQL_FORM}; write special characters in it as %XX.",
        ) from None
    if driver is None:
        raise StoreError(
            f"A store cannot be in '{url.drivername}': only SQLite and PostgreSQL are supported.",
            fix=f"Use sqlite:///PATH or {POSTGRESQL_FORM}.",
        )
    place = Place(url.set(drivername=driver))
    if place.is_sqlite and (url.database or ":memory:") == ":memory:":
        raise StoreError("A store in memory would be lost when the process ends.", fix="Use sqlite:///PATH.")
    return place


def mask_text(text: str) -> str:
    """Replace whatever looks like a password by ***, in a URL that cannot be parsed."""
    text = re.sub(r"(?<=/)([^/@:]*):.*@", r"\1:***@", text)
    text = re.sub(r"^((?:[a-zA-Z+]+:)?/*[^/@:]*):.*@", r"\1:***@", text)
    return re.sub(r"(?i)((?:password|passfile)=)[^&\s]*", r"\1***", text)


def _masked(url: URL) -> str:
    query = {key: "***" if key.lower() in _SECRET_KEYS else value for key, value in url.query.items()}
    return url.set(drivername="postgresql", query=query).render_as_string(hide_password=True)


def refuse_unsafe_sqlite(path: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Raise StoreError for a SQLite file that is not local or does not outlive this job.

    SQLite's WAL needs shared memory between all processes that use the file, which network file systems lack
    (sqlite.org/wal.html). Under AWX the job's file system is removed with its pod, and with it every
    baseline.
    """
    if under_awx(environment):
        raise StoreError(
            f"Under AWX a SQLite store ({path}) would be deleted with the job, and the VMs' baselines "
            "with it.",
            fix=f"Give a PostgreSQL store: {POSTGRESQL_FORM}",
        )
    kind = network_filesystem(path)
    if kind is not None:
        raise StoreError(
            f"{path} is on a network file system ({kind}), where SQLite can lose or corrupt a store.",
            fix=f"Use a folder on a local disk, or a PostgreSQL store: {POSTGRESQL_FORM}",
        )


def under_awx(environment: Mapping[str, str]) -> bool:
    """Whether AWX or Automation Controller started this process (variables of its `build_env`).

    JOB_ID alone is not enough, since batch schedulers set it too.
    """
    if "AWX_PRIVATE_DATA_DIR" in environment:
        return True
    return "JOB_ID" in environment and ("INVENTORY_ID" in environment or "AWX_HOST" in environment)


def network_filesystem(path: Path) -> str | None:
    """The type of the network file system with `path`; None for others and if unknown."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    kind = filesystem_type(path.resolve(), mounts)
    network = kind in _NETWORK_TYPES or (kind.startswith("fuse.") and kind != "fuse.fuse-overlayfs")
    return kind if network else None


def filesystem_type(path: Path, mounts: str) -> str:
    """The type of the file system with an absolute `path`, from /proc/mounts' text; "" if unknown.

    The longest mount point that contains the path wins; of equal ones the later, which hides the earlier.
    Blanks in a mount point are octal escapes (proc(5)).
    """
    found, depth = "", -1
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1]))
        if path.is_relative_to(point) and len(point.parts) >= depth:
            found, depth = fields[2], len(point.parts)
    return found


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
