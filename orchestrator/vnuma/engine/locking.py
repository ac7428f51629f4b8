"""One step at a time per VM on this machine: a file lock that dies with its process."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vnuma.errors import VmHeld

# Each step that holds the lock has deadlines of its own; together they stay well below this.
WAIT_S = 3600.0

_LOOK_S = 0.1


class StillLocked(VmHeld):
    """The process that holds the VM's lock on this machine did not end its step in time."""


@contextmanager
def vm_lock(
    home: Path,
    vm_key: str,
    vm_name: str,
    *,
    wait_s: float = WAIT_S,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[None]:
    """Hold the VM's lock; wait up to `wait_s` seconds for whoever holds it to end its step.

    `say` is told once that it waits, and for whom. Raises StillLocked. The kernel releases the lock when
    the holder dies, so a lock is never left behind.
    """
    folder = home / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(vm_key.encode()).hexdigest()[:24]}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _try(descriptor):
            say(f"waiting for {_holder(descriptor)}, which is changing {vm_name}")
            _wait(descriptor, vm_name, wait_s)
        with suppress(OSError):  # on a full disk the lock holds all the same; only its holder is not named
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, vm_name: str, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while not _try(descriptor):
        if time.monotonic() >= deadline:
            raise StillLocked(
                f"{_holder(descriptor)} on this machine has been changing {vm_name} for {wait_s:.0f} s.",
                fix="Look at: vnuma status. End that process if it hangs; the VM is put back afterwards.",
            )
        time.sleep(min(_LOOK_S, wait_s))


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> str:
    """Who holds the lock, as it wrote itself down."""
    pid = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
    return f"process {pid}" if pid.isdecimal() else "another process"
