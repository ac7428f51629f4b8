"""What cannot work, found in the first second: all of it at once, each with the command that helps.

Nothing is written, downloaded or built here. What set-up itself can put right is not an obstacle.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import platform
import pwd
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from tools.setup_shell import ROOT, VENV, succeeds

CHECKOUT_MB = 1500
"""The checkout with the packages that running needs, and Go with its modules while it builds the lab."""

DEVELOPMENT_MB = 900
"""What tests and linters add."""

CACHE_MB = 200
"""The lab's program, and pip's cache."""

_HELP = {
    "apt-get": (
        "apt-get install -y",
        "python3.11 python3.11-venv",
        "python3-venv",
        "unixodbc tdsodbc",
        "golang-go",
    ),
    "dnf": ("dnf install -y", "python3.12", "python3-pip", "unixODBC", "golang"),
    "zypper": ("zypper install -y", "python312", "python312", "unixODBC", "go"),
    "apk": ("apk add", "python3", "python3", "unixodbc freetds", "go"),
    "pacman": ("pacman -S --needed", "python", "python", "unixodbc freetds", "go"),
    "brew": ("brew install", "python@3.12", "python@3.12", "unixodbc freetds", "go"),
}
"""Each package manager's command, and its packages for each of _THINGS."""
_THINGS = ("python", "venv", "odbc", "go")


@dataclass(frozen=True)
class Obstacle:
    """One thing that cannot work: a sentence, and the command that helps."""

    what: str
    fix: str

    def __str__(self) -> str:
        return f"  - {self.what}\n      {self.fix}"


@dataclass(frozen=True)
class Machine:
    """What set-up depends on. `free_mb` is per file system: its folder, what is free, what is needed."""

    python: tuple[int, ...]
    venv: bool
    manager: str
    root: bool
    odbc: bool
    wheels: bool
    go: bool
    compiler: bool
    not_writable: tuple[Path, ...] = ()
    owner: str = ""
    free_mb: tuple[tuple[Path, int, int], ...] = ()
    processor: str = field(default_factory=platform.machine)

    def help(self, what: str) -> str:
        """The family's command, run as root."""
        known = _HELP.get(self.manager)
        if known is None:
            return f"Install it with this system's package manager ({what}), then: make setup"
        command = f"{known[0]} {known[1 + _THINGS.index(what)]}"
        return command if self.root or self.manager == "brew" else f"sudo {command}"


def obstacles(machine: Machine) -> list[Obstacle]:
    """All that stands in the way on this machine."""
    apt = machine.manager == "apt-get"
    found = []
    if machine.python < (3, 11):
        version = ".".join(map(str, machine.python[:2]))
        found.append(
            Obstacle(
                f"Python {version} is too old: vnuma needs 3.11 or newer.",
                f"{machine.help('python')}; or name one: make setup PYTHON=/path/to/python3.12",
            )
        )
    elif not machine.venv and not (apt and machine.root):
        found.append(Obstacle("This Python cannot make virtual environments.", machine.help("venv")))
    if not machine.odbc and not apt:
        found.append(
            Obstacle("unixODBC is missing (libodbc.so.2), which pyodbc loads.", machine.help("odbc"))
        )
    if not machine.go and not machine.wheels:
        found.append(
            Obstacle(
                f"Go is missing, and has no wheel for this system ({machine.processor}).", machine.help("go")
            )
        )
    if not machine.compiler and not machine.wheels:
        found.append(
            Obstacle(
                f"Packages without a wheel for {machine.processor} need a C compiler, and there is none.",
                "Use Linux with glibc on x86_64 or aarch64, in a container for example.",
            )
        )
    return [*found, *_of_folders(machine)]


def _of_folders(machine: Machine) -> list[Obstacle]:
    """Owners, write access and space."""
    found = []
    if machine.owner:
        found.append(
            Obstacle(
                f"{VENV} belongs to another user ({machine.owner}).",
                f"sudo rm -rf {quote(str(VENV))}; or clone anew",
            )
        )
    for path in machine.not_writable:
        fix = f'sudo chown -R "$(id -u)" {quote(str(path))}; or clone into a folder of your own'
        found.append(Obstacle(f"{path} cannot be written to.", fix))
    for path, free, needed in machine.free_mb:
        if free < needed:
            there = quote(str(path))
            what = f"The disk of {path} has {free} MB free; set-up needs {needed} MB."
            found.append(Obstacle(what, f"Make room: df -h {there}; du -xsh {there}/* | sort -h"))
    return found


def this_machine(*, ready: bool, dev: bool) -> Machine:
    """The facts of this machine. `ready`: .venv is as it should be; `dev`: tests and linters go into it."""
    cache = _cache()
    venv = not ready and _owner(VENV)
    return Machine(
        python=tuple(sys.version_info[:3]),
        venv=ready or _makes_environments(),
        manager=next((name for name in _HELP if shutil.which(name)), ""),
        root=os.geteuid() == 0,
        odbc=_odbc(),
        wheels=_has_wheels(),
        go=shutil.which("go") is not None or Path("/usr/local/go/bin/go").exists(),
        compiler=any(shutil.which(name) for name in ("cc", "gcc", "clang")),
        not_writable=() if ready else tuple(path for path in (ROOT, cache) if not _writable(path)),
        owner=venv or "",
        free_mb=() if ready else _space({ROOT: CHECKOUT_MB + dev * DEVELOPMENT_MB, cache: CACHE_MB}),
    )


def _makes_environments() -> bool:
    base = getattr(sys, "_base_executable", sys.executable)
    whole = succeeds(base, "-c", "import ensurepip, venv")
    return whole or (succeeds(base, "-c", "import venv") and succeeds(base, "-m", "pip", "--version"))


def _has_wheels() -> bool:
    """Whether every package has a wheel here: macOS, and Linux with glibc on the two usual processors."""
    glibc = platform.libc_ver()[0] == "glibc" and platform.machine() in ("x86_64", "aarch64")
    return glibc or sys.platform == "darwin"


def _odbc() -> bool:
    """Whether pyodbc will find unixODBC: on the machine, or unpacked into .venv by an earlier set-up."""
    if any(VENV.glob("odbc/usr/lib/*/libodbc.so.2")):
        return True
    if sys.platform == "darwin":
        return (
            ctypes.util.find_library("odbc") is not None or Path("/opt/homebrew/lib/libodbc.2.dylib").exists()
        )
    try:
        ctypes.CDLL("libodbc.so.2")
    except OSError:
        return False
    return True


def _cache() -> Path:
    """Where Go and the lab's program are cached."""
    chosen = os.environ.get("XDG_CACHE_HOME")
    return Path(chosen) if chosen else Path(os.environ.get("HOME") or "/") / ".cache"


def _owner(path: Path) -> str:
    """The other user that a folder belongs to; empty when it is ours, absent, or we are root."""
    try:
        uid = path.lstat().st_uid
    except OSError:
        return ""
    if os.geteuid() in (0, uid):
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _there(path: Path) -> Path:
    """The folder itself, or the nearest above it that exists."""
    while not path.exists():
        path = path.parent
    return path


def _writable(path: Path) -> bool:
    return os.access(_there(path), os.W_OK | os.X_OK)


def _space(needed: dict[Path, int]) -> tuple[tuple[Path, int, int], ...]:
    """For each file system once: a folder on it, free MB, and all that is needed there."""
    systems: dict[int, tuple[Path, int]] = {}
    for path, megabytes in needed.items():
        device = _there(path).stat().st_dev
        first, sum_mb = systems.get(device, (path, 0))
        systems[device] = (first, sum_mb + megabytes)
    return tuple(
        (first, shutil.disk_usage(_there(first)).free // 2**20, sum_mb) for first, sum_mb in systems.values()
    )
