"""The only importer of pyodbc, which first loads unixODBC from the virtual environment.

pyodbc's Linux wheels lack `libodbc.so.2`. If the machine lacks it too, set-up unpacks the distribution's
packages, without root, into `FOLDER`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from vnuma.errors import DriverMissing

FOLDER = Path(sys.prefix) / "odbc"
"""unixODBC and FreeTDS for this Python environment only, laid out as in their packages."""

UNIXODBC = (
    "Debian and Ubuntu: apt install unixodbc tdsodbc. Fedora: dnf install unixODBC. "
    "macOS: brew install unixodbc."
)
"""How to install it."""


def libraries(folder: Path = FOLDER) -> list[Path]:
    """The distinct shared libraries unpacked there, without drivers."""
    found = {path.resolve() for place in ("lib", "usr/lib") for path in folder.glob(f"{place}/*/*.so.*")}
    return sorted(path for path in found if path.is_file())


def environment(folder: Path = FOLDER) -> dict[str, str]:
    """The environment for a local program that imports pyodbc without this module."""
    folders = dict.fromkeys(str(path.parent) for path in libraries(folder))
    inherited = os.environ.get("LD_LIBRARY_PATH")
    paths = [*folders, *([inherited] if inherited else [])]
    return {**os.environ, **({"LD_LIBRARY_PATH": ":".join(paths)} if folders else {})}


def load(folder: Path = FOLDER) -> None:
    """Load the libraries unpacked there, dependencies first.

    The dynamic linker uses an already loaded library for its soname. One that does not load is skipped:
    whatever needs it reports that.
    """
    waiting = libraries(folder)
    while waiting:
        left = [path for path in waiting if not _loads(path)]
        if len(left) == len(waiting):
            return
        waiting = left


def _loads(path: Path) -> bool:
    try:
        ctypes.CDLL(str(path))
    except OSError:
        return False
    return True


load()
try:
    import pyodbc
except ImportError as error:
    raise DriverMissing(
        f"pyodbc could not be loaded: {error}.",
        fix=(
            f"It needs unixODBC's libodbc.so.2, which wheels do not contain. {UNIXODBC} In a "
            "checkout: make setup."
        ),
    ) from error

# A pooled handle would survive the restart of its guest. The driver manager reads this once, before the
# process's first connection.
pyodbc.pooling = False

__all__ = ["pyodbc"]
