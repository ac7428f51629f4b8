"""Which process looks after a run, and whether it is alive."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

from sqlalchemy import Connection

from vnuma.engine.lease.locking import stat_of
from vnuma.errors import LeaseLost, StoreBusy, StoreError, VmHeld
from vnuma.store import runs
from vnuma.store.open import Store
from vnuma.store.rows import Run
from vnuma.store.sites import sites_of_run
from vnuma.store.types import utc_now

# A supervisor counts as dead after this long without a heartbeat; it beats each second, or each BEAT_S.
SILENT_AFTER = timedelta(minutes=2)


BEAT_S = 20.0


# The start of a process is known to about a second.
CLOCK_GRAIN = timedelta(seconds=2)


@dataclass(frozen=True)
class Supervisor:
    """A process that looks after a run."""

    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=socket.gethostname)


def is_alive(run: Run) -> bool:
    """Whether a supervisor looks after this run: it was heard of lately and, if here, its process lives.

    A process that is frozen is silent; one that has ended and that nobody has waited for has a number.
    """
    if run.supervisor_pid is None or run.heartbeat_at is None:
        return False
    if utc_now() - run.heartbeat_at >= SILENT_AFTER:
        return False
    if run.supervisor_host != socket.gethostname():
        return True
    return process_lives(run.supervisor_pid) and not _is_another(run)


def is_worked_on(connection: Connection, run: Run) -> bool:
    """Whether a process looks after this run, or after a node's part of it."""
    parts = (runs.at_site(connection, run, site.node) for site in sites_of_run(connection, run.id))
    return is_alive(run) or any(map(is_alive, parts))


def claim_supervision(store: Store, run: Run, supervisor: Supervisor | None = None) -> None:
    """Make this process, or another one, the one that looks after the run, before it touches a VM.

    Raises VmHeld while a third does. The run's row is locked: of two at once only one succeeds.
    """
    supervisor = supervisor or Supervisor()
    with store.write() as connection:
        refuse_if_alive(runs.lock_run(connection, run), supervisor)
        runs.touch_supervisor(connection, run, pid=supervisor.pid, host=supervisor.host)


def require_supervision(store: Store, run: Run) -> None:
    """Say that this process lives and looks after the run.

    Raises LeaseLost when another has put its VMs back or taken it over: this one was frozen meanwhile.
    """
    if not _heard(store, run, Supervisor()):
        raise LeaseLost(
            f"Another process restored or took over {run.name} while this one was not running.",
            fix=f"vnuma status shows its state; to continue: vnuma run --resume {run.name}",
        )


@contextmanager
def unless_full() -> Iterator[None]:
    """For writes before a restore: a store that nobody can write does not keep a VM from it. StoreBusy."""
    try:
        yield
    except StoreBusy:
        raise
    except StoreError:
        return


def release_dead_supervisor(store: Store, run: Run) -> None:
    """Nobody looks after a run whose controller died; one that was only frozen goes no further.

    Raises VmHeld while it lives, StoreBusy. On a store that cannot be written it could not go on either.
    """
    with unless_full(), store.write() as connection:
        refuse_if_alive(runs.lock_run(connection, run))
        runs.clear_supervisor(connection, run)


@contextmanager
def heartbeat(
    store: Store, run: Run, supervisor: Supervisor | None = None, every_s: float = BEAT_S
) -> Iterator[None]:
    """Say while something works, which may take hours, that its process lives. Silent ones count as dead."""
    done, who = Event(), supervisor or Supervisor()

    def beat() -> None:
        while not done.wait(every_s):
            with suppress(StoreError):  # the work's own writes tell of a store that is gone
                _heard(store, run, who)

    thread = Thread(target=beat, daemon=True)
    with suppress(RuntimeError):  # no thread is to be had: the work goes on, and is silent
        thread.start()
    try:
        yield
    finally:
        done.set()
        if thread.is_alive():
            thread.join()


def _heard(store: Store, run: Run, supervisor: Supervisor) -> bool:
    with store.write() as connection:
        return runs.keep_supervisor(connection, run, pid=supervisor.pid, host=supervisor.host)


def refuse_if_alive(run: Run, supervisor: Supervisor | None = None) -> None:
    """Raise VmHeld when a process other than this one, or the one named, looks after the run."""
    if is_alive(run) and Supervisor(run.supervisor_pid or 0, run.supervisor_host or "") != (
        supervisor or Supervisor()
    ):
        raise VmHeld(
            f"{run.name} is running, supervised by process {run.supervisor_pid} on {run.supervisor_host}.",
            fix=f"vnuma status, or vnuma stop {run.name}",
        )


def process_lives(pid: int) -> bool:
    """Whether a process of that number runs on this machine.

    One that has ended and waits to be asked how does not (state Z or X in /proc/PID/stat, proc(5)).
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with suppress(OSError, IndexError):  # there is no /proc, or the process has just gone
        return stat_of(pid)[0] not in "ZXx"
    return True


def _is_another(run: Run) -> bool:
    """Whether the process with the supervisor's number began after the supervisor was last heard of."""
    began = _began(run.supervisor_pid or 0)
    return began is not None and run.heartbeat_at is not None and began > run.heartbeat_at + CLOCK_GRAIN


def _began(pid: int) -> datetime | None:
    """When a process began (proc(5): btime, and field 22 of stat); None where there is no /proc."""
    try:
        boot = re.search(r"^btime (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)
        ticks = int(stat_of(pid)[19])
    except OSError:
        return None
    return datetime.fromtimestamp(int(boot[1]) + ticks / os.sysconf("SC_CLK_TCK"), UTC) if boot else None
