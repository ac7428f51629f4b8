"""One step at a time per VM on this machine: a file lock that dies with its process."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vnuma.errors import VmHeld


@contextmanager
def vm_lock(home: Path, vm_key: str, vm_name: str, *, wait: bool) -> Iterator[None]:
    """Hold the VM's lock. `wait` blocks until whoever holds it ends its step; otherwise VmHeld.

    The kernel releases the lock when the holder dies, so a lock is never left behind.
    """
    folder = home / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(vm_key.encode()).hexdigest()[:24]}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise VmHeld(
                f"Another process on this machine is changing {vm_name} at this moment.",
                fix="Look at: vnuma status",
            ) from None
        yield
    finally:
        os.close(descriptor)
