"""One step at a time per VM on this machine: a file lock that ends with its process."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from vnuma.domain.study.study import PowerRules
from vnuma.errors import StoreError, VmHeld, write_fix
from vnuma.file_lock import lock_within

WAIT_S = 3600.0
"""How long to wait at least for a step to end: statements of a measurement have no deadline of ours."""

_ENDS_S = 120.0
"""An execution whose deadline has passed is ended within this time, or its connection is."""

# A suspended holder (SIGSTOP) never ends its step, so we wait only briefly for one.
STOPPED_S = 10.0

_LOOK_S = 0.1

_MACHINES_OWN = "pid:[4026531836]"
"""The namespace outside of every container: PROC_PID_INIT_INO in Linux' include/linux/proc_ns.h."""

_NOT_WRITABLE = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM)


def patience_s(rules: PowerRules, execution_s: float = 0) -> float:
    """How long to wait for a VM whose holder has these deadlines, so that its longest step can end.

    `execution_s` is the deadline of one execution of its workload.
    """
    return max(WAIT_S, rules.longest_hold_s, execution_s + _ENDS_S)


@contextmanager
def vm_lock(
    home: Path,
    vm_key: str,
    vm_name: str,
    *,
    wait_s: float = WAIT_S,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[None]:
    """Hold the VM's lock; wait up to `wait_s` seconds for its holder to end a step.

    `say` is called once while waiting, with the holder. Raises VmHeld, and StoreError where no lock file
    can be made. The kernel releases the lock when the holder dies.
    """
    descriptor = _opened(home, vm_key)
    try:
        if not lock_within(descriptor):
            say(f"waiting for {_holder(descriptor)}, which is changing {vm_name}")
            _wait(descriptor, vm_name, wait_s)
        with suppress(OSError):  # on a full disk the lock works; only its holder is not recorded
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()} {this_host()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def make_lockable(home: Path, vm_key: str) -> None:
    """Make the VM's lock file before the VM is changed, so that a full disk keeps nobody from restoring it.

    Raises StoreError.
    """
    os.close(_opened(home, vm_key))


def _opened(home: Path, vm_key: str) -> int:
    """The VM's lock file; opened for reading where the disk cannot be written, which suffices for locking."""
    path = home / "locks" / f"{hashlib.sha256(vm_key.encode()).hexdigest()[:24]}.lock"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
        with suppress(OSError):
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        raise StoreError(
            f"No VM can be locked in {home} ({error.strerror}).", fix=write_fix(error, home)
        ) from error


def _wait(descriptor: int, vm_name: str, wait_s: float) -> None:
    """Lock the file after its present holder. Raises VmHeld."""
    began = time.monotonic()
    while not lock_within(descriptor):
        waited, stopped = time.monotonic() - began, _is_stopped(descriptor)
        if waited >= (min(wait_s, STOPPED_S) if stopped else wait_s):
            how = f"holds {vm_name} and is stopped" if stopped else f"has been changing {vm_name}"
            raise VmHeld(
                f"{_holder(descriptor)} {how}: waited {waited:.0f} s for it.",
                fix="Check: vnuma status. End that process if it hangs; the VM is restored afterwards.",
            )
        time.sleep(min(_LOOK_S, wait_s))


@cache
def this_host() -> str:
    """Where process numbers mean what they mean here: the machine's name, in a container with its namespace.

    Containers may share the machine's name, and their numbers differ (pid_namespaces(7)). The name is that
    of the time when the process first asked: DHCP may change it during a run of hours.
    """
    name, space = socket.gethostname(), ""
    with suppress(OSError):  # no /proc
        space = os.readlink("/proc/self/ns/pid")
    return name if space in ("", _MACHINES_OWN) else f"{name} {space}"


def name_of(host: str) -> str:
    """The machine's name alone, for people."""
    return host.partition(" ")[0]


def _written(descriptor: int) -> tuple[int, str] | None:
    """Process number and host that the holder recorded."""
    pid, _, host = os.pread(descriptor, 300, 0).decode(errors="replace").strip().partition(" ")
    return (int(pid), host) if pid.isdecimal() else None


def _holder(descriptor: int) -> str:
    """The lock's holder, as text."""
    found = _written(descriptor)
    if found is None:
        return "another process"
    host = "this machine" if found[1] == this_host() else name_of(found[1])
    return f"process {found[0]} on {host}"


def _is_stopped(descriptor: int) -> bool:
    """Whether the holder is a process of this host that a signal or a debugger has suspended."""
    found = _written(descriptor)
    if found is None or found[1] != this_host():
        return False
    with suppress(OSError, IndexError):  # it has just ended, or there is no /proc
        return stat_of(found[0])[0] in "Tt"
    return False


def stat_of(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on: its state (proc(5)). Raises OSError without one."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
