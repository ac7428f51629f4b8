"""A folder for what only a run's own processes may see. What a killed controller left is removed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK = ".lock"


@contextmanager
def private_folder(home: Path) -> Iterator[Path]:
    """A new folder of mode 0700, removed afterwards; those of dead processes are removed first.

    Its owner holds a lock on the file beside it for as long as it lives. A process number would say less:
    hosts and containers that share a home have the same ones.
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
        with suppress(OSError):  # whoever makes the next one removes what this one could not
            path.unlink(missing_ok=True)
        os.close(lock)


def _new_lock(base: Path) -> tuple[int, Path]:
    """A file that this process alone holds locked. One that was removed before that is made anew."""
    while True:
        descriptor, name = tempfile.mkstemp(suffix=_LOCK, prefix="run-", dir=base)
        if _locked(descriptor) and os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    """Whether nobody else has it locked. On a disk that knows no locks nobody ever removes it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def remove_abandoned(home: Path) -> None:
    """Folders whose lock nobody holds, and those without one: they belong to no living process. OSError."""
    base, owned = home / "private", set()
    for path in base.glob(f"*{_LOCK}"):
        owned.add(path.with_suffix(""))
        with suppress(OSError):  # held, removed by another meanwhile, or on a disk that knows no locks
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path.with_suffix(""), ignore_errors=True)
                path.unlink()
            finally:
                os.close(descriptor)
    for folder in base.iterdir():
        if folder.suffix != _LOCK and folder not in owned and not folder.with_suffix(_LOCK).exists():
            shutil.rmtree(folder, ignore_errors=True)
