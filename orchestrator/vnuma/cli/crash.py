"""How a bug is reported: one sentence, and a file with its traceback."""

from __future__ import annotations

import platform
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path

from vnuma import __version__, assets
from vnuma.errors import NotAtBaseline
from vnuma.words.plain_text import escaped


def write_crash(error: BaseException) -> Path:
    """Write the traceback of an unexpected error; returns the file. Holds no values of variables."""
    folder = assets.home() / "crashes"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.txt"
    head = f"vnuma {__version__}, Python {platform.python_version()}, {platform.platform()}\n\n"
    path.write_text(head + "".join(traceback.format_exception(error)), encoding="utf-8")
    return path


def report_bug(error: BaseException) -> None:
    """Report a bug on standard error. Its traceback is in a file, or printed here if that fails."""
    try:
        where = f"The traceback is in {write_crash(error)}"
    except OSError as refused:
        trace = "".join(traceback.format_exception(error))
        where = f"The traceback could not be written to a file ({refused.strerror}):\n{trace}"
    sys.stderr.write(escaped(f"This is a bug in vnuma: {type(error).__name__}: {error}\n  {where}\n"))


def report_bug_within(error: Exception) -> None:
    """The same for a bug that prevented a VM's restore, if there was one."""
    if isinstance(error, NotAtBaseline) and error.bug:
        report_bug(error.bug)
