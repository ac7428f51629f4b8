"""A folder that only a run's own processes can read; those of killed controllers are removed."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vnuma.file_lock import lock_within

_LOCK = ".lock"

_WAITING = "waiting"
_STALE_S = 3.0
"""A step that waits says so several times a second."""


@contextmanager
def private_folder(home: Path) -> Iterator[Path]:
    """A new folder of mode 0700, removed afterwards. Folders of dead processes are removed first.

    Its owner locks a file next to it. A process number would not do: hosts and containers that share a home
    reuse them.
    """
    base = home / "private"
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_abandoned(home)
    lock, path = _new_lock(base)
    folder = path.with_suffix("")
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # the next call removes what this one could not
            path.unlink(missing_ok=True)
        os.close(lock)


def _new_lock(base: Path) -> tuple[int, Path]:
    """A new lock file that this process holds; if another process removes it meanwhile, another is made."""
    while True:
        descriptor, name = tempfile.mkstemp(suffix=_LOCK, prefix="run-", dir=base)
        locked = True
        with suppress(OSError):  # a disk without locks
            locked = lock_within(descriptor)
        if locked and os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)


def remove_abandoned(home: Path) -> None:
    """Remove folders without a lock, or whose lock no living process holds. Raises OSError."""
    base, owned = home / "private", set()
    for path in base.glob(f"*{_LOCK}"):
        owned.add(path.with_suffix(""))
        with suppress(OSError):  # locked, removed meanwhile, or on a disk without locks
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                if lock_within(descriptor):
                    shutil.rmtree(path.with_suffix(""), ignore_errors=True)
                    path.unlink()
            finally:
                os.close(descriptor)
    for folder in base.iterdir():
        if folder.suffix != _LOCK and folder not in owned and not folder.with_suffix(_LOCK).exists():
            shutil.rmtree(folder, ignore_errors=True)


def tell_waiting(folder: Path, words: str) -> None:
    """In a step, say to the supervisor why the step waits: the store that both use is away for the step."""
    with suppress(OSError):  # a full disk: the step waits all the same
        (folder / _WAITING).write_text(words, encoding="utf-8")


def waiting_words(folder: Path) -> str | None:
    """Why a step of the folder's play waits now; None if none does."""
    path = folder / _WAITING
    with suppress(OSError):
        if time.time() - path.stat().st_mtime < _STALE_S:
            return path.read_text(encoding="utf-8")
    return None
