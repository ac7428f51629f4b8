"""The file that a bug leaves behind."""

from __future__ import annotations

import platform
import traceback
from datetime import UTC, datetime
from pathlib import Path

from vnuma import __version__, assets


def write_crash(error: BaseException) -> Path:
    """Write the traceback of an unexpected error; returns the file. Holds no values of variables."""
    folder = assets.home() / "crashes"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.txt"
    head = f"vnuma {__version__}, Python {platform.python_version()}, {platform.platform()}\n\n"
    path.write_text(head + "".join(traceback.format_exception(error)), encoding="utf-8")
    return path
