"""The one place that imports pyodbc: unixODBC from the virtual environment is loaded before it.

No wheel of pyodbc for Linux holds `libodbc.so.2`. Where the machine has none either, set-up unpacks the
distribution's packages, without root, into `FOLDER`.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from vnuma.errors import DriverMissing

FOLDER = Path(sys.prefix) / "odbc"
"""unixODBC and FreeTDS for this Python environment alone, as their packages lay them out."""

UNIXODBC = (
    "Debian and Ubuntu: apt install unixodbc tdsodbc. Fedora: dnf install unixODBC. "
    "macOS: brew install unixodbc."
)
"""How it comes onto a machine."""


def libraries(folder: Path = FOLDER) -> list[Path]:
    """The shared libraries unpacked there, each once; drivers are not among them."""
    found = {path.resolve() for place in ("lib", "usr/lib") for path in folder.glob(f"{place}/*/*.so.*")}
    return sorted(path for path in found if path.is_file())


def environment(folder: Path = FOLDER) -> dict[str, str]:
    """What a program of this machine needs that imports pyodbc without this module."""
    folders = dict.fromkeys(str(path.parent) for path in libraries(folder))
    inherited = os.environ.get("LD_LIBRARY_PATH")
    paths = [*folders, *([inherited] if inherited else [])]
    return {**os.environ, **({"LD_LIBRARY_PATH": ":".join(paths)} if folders else {})}


def load(folder: Path = FOLDER) -> None:
    """Load the libraries unpacked there, those first that others need.

    The dynamic linker takes a library that is already loaded for any that asks for its soname. One that
    does not load is left out: whatever needs it says so in words of its own.
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

# A pooled handle outlives the restart of the guest that it was connected to. The driver manager
# reads this once, before the first connection of the process.
pyodbc.pooling = False

__all__ = ["pyodbc"]
