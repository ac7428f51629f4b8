"""Lock an open file for one process at a time, with a time limit: flock(2) has none."""

from __future__ import annotations

import time

from vnuma.errors import EnvironmentProblem

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_LOOK_S = 0.02


def lock_within(descriptor: int, wait_s: float = 0.0) -> bool:
    """Lock the file; False if another process still holds it after `wait_s` seconds.

    Raises OSError on a disk without locks, EnvironmentProblem on Windows.
    """
    require_unix()
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_LOOK_S)
        else:
            return True


def require_unix() -> None:
    """Raise EnvironmentProblem on Windows, where vnuma only reads: a run could not hold its locks."""
    if fcntl is None:
        raise EnvironmentProblem(
            "On Windows vnuma only reads: runs, restores and the lab need WSL 2.",
            fix="Install vnuma in WSL 2: https://learn.microsoft.com/windows/wsl/install",
        )
