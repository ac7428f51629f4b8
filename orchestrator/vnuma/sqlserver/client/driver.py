"""Choose the ODBC driver, in a documented order; every run records it.

Times from different drivers are never compared: the client form measures how fast a driver discards rows,
too.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
from collections.abc import Iterator, Sequence
from configparser import Error as ConfigError
from configparser import RawConfigParser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from vnuma.errors import DriverMissing
from vnuma.sqlserver.client.odbc import FOLDER, pyodbc

DriverKind = Literal["msodbcsql18", "msodbcsql17", "freetds"]

ENVIRONMENT_VARIABLE = "VNUMA_ODBC_DRIVER"

_REGISTERED: tuple[tuple[str, DriverKind], ...] = (
    ("ODBC Driver 18 for SQL Server", "msodbcsql18"),
    ("ODBC Driver 17 for SQL Server", "msodbcsql17"),
    ("FreeTDS", "freetds"),
)
_FREETDS_PLACES = (
    "usr/lib/x86_64-linux-gnu/odbc/libtdsodbc.so",
    "usr/lib/aarch64-linux-gnu/odbc/libtdsodbc.so",
    "usr/lib/odbc/libtdsodbc.so",
    "usr/lib64/libtdsodbc.so.0",
    "usr/lib64/libtdsodbc.so",
    "usr/lib/libtdsodbc.so",
    "usr/local/lib/libtdsodbc.so",
    "opt/homebrew/lib/libtdsodbc.so",
)
LIBRARIES = tuple(f"/{place}" for place in _FREETDS_PLACES)
"""FreeTDS's locations in distributions."""

_INI_PLACES = ("etc/odbcinst.ini", "usr/local/etc/odbcinst.ini", "opt/homebrew/etc/odbcinst.ini")
_MISSING = "No ODBC driver for SQL Server found (looked for msodbcsql18, 17, FreeTDS)."
_INSTALL = "Debian: apt install tdsodbc. Without root: vnuma setup --odbc wheel."


@dataclass(frozen=True)
class Driver:
    """An ODBC driver. `name` is what the driver manager gets: a registered name or a library's path.

    `version` is empty if only a connection shows it; `path` is None for a registered driver whose library is
    not an absolute path.
    """

    name: str
    kind: DriverKind
    version: str = ""
    path: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.version}".strip()


@dataclass(frozen=True)
class Machine:
    """Where to look for drivers. Tests pass their own folders as `root` and `unpacked`."""

    registered: tuple[str, ...] = field(default_factory=lambda: tuple(pyodbc.drivers()))
    root: Path = Path("/")
    wheel: Path | None = field(default_factory=lambda: _wheel_folder())
    unpacked: Path = FOLDER


def discover(preferred: str = "auto", *, machine: Machine | None = None) -> Driver:
    """The first of: registered msodbcsql18 and msodbcsql17, the FreeTDS unpacked by set-up into this Python
    environment, registered FreeTDS, FreeTDS at a distribution's path, and the wheel mssql-python-odbc.

    `preferred` (else the environment variable VNUMA_ODBC_DRIVER) overrides it: a kind, a registered name, or
    a library's path. Raises DriverMissing.
    """
    machine = machine or Machine()
    wanted = preferred if preferred != "auto" else os.environ.get(ENVIRONMENT_VARIABLE, "auto")
    if wanted in ("", "auto"):
        found = next(_candidates(machine), None)
        if found is None:
            raise DriverMissing(_MISSING, fix=_INSTALL)
        return found
    if "/" in wanted:
        return _from_path(Path(wanted))
    for candidate in _candidates(machine):
        if wanted.casefold() in (candidate.kind, candidate.name.casefold()):
            return candidate
    raise DriverMissing(
        f"The ODBC driver '{wanted}' was requested, but no driver of that name or kind is installed.",
        fix=f"Registered here: {', '.join(machine.registered) or 'none'}. {_INSTALL}",
    )


def elsewhere(own: Driver, registered: Sequence[str], libraries: Sequence[str]) -> Driver | None:
    """The driver for another machine, from those registered there and its existing `LIBRARIES`.

    Our own driver if that machine has it, else its first in the usual order; None without any.
    """
    there = [Driver(name, kind) for name, kind in _REGISTERED if name in registered]
    there += [Driver(path, "freetds", path=path) for path in libraries]
    same = [driver for driver in there if driver.kind == own.kind]
    return next(iter([*same, *there]), None)


def _candidates(machine: Machine) -> Iterator[Driver]:
    """Every usable driver, in order of preference."""
    registered = [driver for name, kind in _REGISTERED for driver in _registered(machine, name, kind)]
    yield from (driver for driver in registered if driver.kind != "freetds")
    # Set-up unpacks FreeTDS only if the machine has none that loads, whatever is registered.
    yield from _freetds_in(machine.unpacked)
    yield from (driver for driver in registered if driver.kind == "freetds")
    yield from _freetds_in(machine.root)
    if machine.wheel is not None:
        for path in _wheel_libraries(machine.wheel):
            yield Driver(str(path), "msodbcsql18", _version(path), str(path))


def _registered(machine: Machine, name: str, kind: DriverKind) -> Iterator[Driver]:
    """The driver registered by that name, unless its library is missing."""
    if name in machine.registered:
        path = _library_path(_registered_libraries(machine).get(name, ""), machine.root)
        if path is None or path.exists():
            yield Driver(name, kind, _version(path), str(path) if path else None)


def _freetds_in(root: Path) -> Iterator[Driver]:
    """FreeTDS at the distributions' locations."""
    for place in _FREETDS_PLACES:
        path = root / place
        if path.exists():
            yield Driver(str(path), "freetds", _version(path), str(path))


def _library_path(library: str, root: Path) -> Path | None:
    """A registered library's path; a bare file name is searched in the distributions' locations."""
    if library.startswith("/"):
        return Path(library)
    places = (root / place for place in _FREETDS_PLACES)
    return next((place for place in places if place.name == library and place.exists()), None)


def _from_path(path: Path) -> Driver:
    if not path.is_file():
        raise DriverMissing(f"There is no ODBC driver at {path}.", fix=_INSTALL)
    name = path.name.casefold()
    if "tdsodbc" in name:
        kind: DriverKind = "freetds"
    elif "msodbcsql" in name:
        kind = "msodbcsql17" if "17" in name else "msodbcsql18"
    else:
        raise DriverMissing(
            f"{path} is neither a FreeTDS (libtdsodbc) nor a Microsoft (libmsodbcsql) driver.",
            fix="Name one of these libraries.",
        )
    return Driver(str(path), kind, _version(path), str(path))


def _registered_libraries(machine: Machine) -> dict[str, str]:
    """Library by driver name, from odbcinst.ini; an unreadable file registers nothing."""
    places = [machine.root / place for place in _INI_PLACES]
    if folder := os.environ.get("ODBCSYSINI"):
        places.insert(0, Path(folder) / "odbcinst.ini")
    for place in places:
        parser = RawConfigParser(strict=False)
        try:
            read = parser.read(place)
        except (ConfigError, UnicodeDecodeError):
            continue
        if read:
            return {name: parser.get(name, "Driver", fallback="") for name in parser.sections()}
    return {}


def _version(path: Path | None) -> str:
    """The library's version, from its file name (Microsoft) or its content (FreeTDS)."""
    if path is None:
        return ""
    name = path.resolve().name
    if match := re.search(r"msodbcsql-?(\d+)\.?(\d*)\.so\.([\d.]+)", name):
        return ".".join(part for part in match.groups() if part)
    if match := re.search(r"msodbcsql\.?(\d+)\.dylib", name):
        return match[1]
    found = re.search(rb"freetds v([0-9]+(?:\.[0-9]+)+)", path.read_bytes()) if "tdsodbc" in name else None
    return found[1].decode() if found else ""


def _wheel_folder() -> Path | None:
    """The folder of the wheel mssql-python-odbc, if installed."""
    spec = importlib.util.find_spec("mssql_python_odbc")
    return Path(spec.origin).parent if spec and spec.origin else None


def _wheel_libraries(folder: Path) -> list[Path]:
    """The wheel's libraries for this system and processor, those of the distribution's family first."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "aarch64": "arm64"}.get(machine, machine)
    system = "macos" if platform.system() == "Darwin" else "linux"
    pattern = f"libs/{system}/**/libmsodbcsql*"
    fitting = [path for path in sorted(folder.glob(pattern)) if machine in path.parts]
    family = _family()
    return sorted(fitting, key=lambda path: family not in path.parts)


def _family() -> str:
    """The wheel's name for this Linux distribution."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return "debian_ubuntu"
    names = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    if names & {"rhel", "fedora", "centos"}:
        return "rhel"
    if names & {"suse", "opensuse", "sles"}:
        return "suse"
    return "alpine" if "alpine" in names else "debian_ubuntu"
