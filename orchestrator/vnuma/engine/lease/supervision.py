"""Which process supervises a run, and whether it is alive."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

from sqlalchemy import Connection

from vnuma.engine.access.locking import name_of, stat_of, this_host
from vnuma.engine.access.places import store_url
from vnuma.errors import LeaseLost, StoreBusy, StoreError, VmHeld
from vnuma.store import runs
from vnuma.store.leases import vms_of_run
from vnuma.store.open import Store, open_store
from vnuma.store.rows import Run, RunState, StopRequest
from vnuma.store.sites import sites_of_run
from vnuma.store.tables import utc_now

# A supervisor counts as dead after this long without a heartbeat, sent every BEAT_S or more often.
SILENT_AFTER = timedelta(minutes=2)


BEAT_S = 20.0


# A process's start time is known to about a second.
CLOCK_GRAIN = timedelta(seconds=2)


def is_alive(run: Run) -> bool:
    """Whether a supervisor of this run is alive: recent heartbeat and, if seen from here, a running process.

    A frozen process sends no heartbeat; an ended one that was not waited for still has a number.
    """
    if run.supervisor_pid is None or run.heartbeat_at is None:
        return False
    if utc_now() - run.heartbeat_at >= SILENT_AFTER:
        return False
    if run.supervisor_host != this_host():
        return True
    return process_lives(run.supervisor_pid) and not _number_is_reused(run)


def is_worked_on(connection: Connection, run: Run) -> bool:
    """Whether a process supervises this run, or a site's part of it."""
    parts = (runs.at_site(connection, run, site.name) for site in sites_of_run(connection, run.id))
    return is_alive(run) or any(map(is_alive, parts))


def claim_supervision(store: Store, run: Run, pid: int | None = None) -> None:
    """Make this process, or the one of that number here, the run's supervisor, before it touches a VM.

    Raises VmHeld while another is. The run's row is locked, so of two at once only one succeeds.
    """
    with store.write() as connection:
        refuse_if_alive(runs.lock_run(connection, run), pid)
        runs.touch_supervisor(connection, run, pid=pid or os.getpid(), host=this_host())


def require_supervision(store: Store, run: Run) -> None:
    """Send a heartbeat as the run's supervisor.

    Raises LeaseLost when another process has restored its VMs or taken it over while this one was frozen.
    """
    if not _send_heartbeat(store, run, os.getpid()):
        raise LeaseLost(
            f"Another process restored or took over {run.name} while this one was not running.",
            fix=f"vnuma status shows its state; to continue: vnuma run --resume {run.name}",
        )


@contextmanager
def tolerating_full_store() -> Iterator[None]:
    """For writes before a restore: a store on a full disk must not prevent it. Raises StoreBusy."""
    try:
        yield
    except StoreBusy:
        raise
    except StoreError:
        return


def release_dead_supervisor(store: Store, run: Run) -> None:
    """Remove the supervisor of a run whose controller died; one that was only frozen then stops.

    Raises VmHeld while it lives, StoreBusy. Ignores a full store, where a frozen one could not continue.
    """
    with tolerating_full_store(), store.write() as connection:
        refuse_if_alive(runs.lock_run(connection, run))
        runs.clear_supervisor(connection, run)


def stop_unless_worked_on(store: Store, run: Run) -> None:
    """Mark a run whose last VM was restored as stopped, unless it has ended or is worked on elsewhere."""
    with store.write() as connection:
        whole = runs.get_run(connection, run.name)
        if not all(vm.at_baseline for vm in vms_of_run(connection, run.id)):
            return
        if not whole.state.ended and not is_worked_on(connection, whole):
            runs.set_run_state(connection, run.id, RunState.STOPPED)


@contextmanager
def heartbeat(store: Store, run: Run, pid: int | None = None, every_s: float = BEAT_S) -> Iterator[None]:
    """Send heartbeats during work that may take hours; a silent process counts as dead."""
    done, who = Event(), pid or os.getpid()

    def beat() -> None:
        while not done.wait(every_s):
            with suppress(StoreError):  # the work's own writes report a store that is gone
                _send_heartbeat(store, run, who)

    thread = Thread(target=beat, daemon=True)
    with suppress(RuntimeError):  # no thread available: the work continues without heartbeats
        thread.start()
    try:
        yield
    finally:
        done.set()
        if thread.is_alive():
            thread.join()


def _send_heartbeat(store: Store, run: Run, pid: int) -> bool:
    """Send one if this is still the run's supervisor; returns whether it is."""
    with store.write() as connection:
        return runs.keep_supervisor(connection, run, pid=pid, host=this_host())


def refuse_if_alive(run: Run, pid: int | None = None) -> None:
    """Raise VmHeld when another process than this one, or than `pid` here, supervises the run."""
    if is_alive(run) and (run.supervisor_pid, run.supervisor_host) != (pid or os.getpid(), this_host()):
        raise VmHeld(
            f"{run.name} is running, supervised by process {run.supervisor_pid} on "
            f"{name_of(run.supervisor_host or '')}.",
            fix=f"vnuma status, or vnuma stop {run.name}",
        )


def process_lives(pid: int) -> bool:
    """Whether a process of that number runs on this machine.

    A zombie (state Z or X in /proc/PID/stat, proc(5)) does not.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with suppress(OSError, IndexError):  # no /proc, or the process has just ended
        return stat_of(pid)[0] not in "ZXx"
    return True


def _number_is_reused(run: Run) -> bool:
    """Whether the process with the supervisor's number started after the supervisor's last heartbeat
    (proc(5): btime, and field 22 of stat).
    """
    try:
        boot = re.search(r"^btime (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)
        ticks = int(stat_of(run.supervisor_pid or 0)[19])
    except (OSError, IndexError):  # no /proc, or the process has just ended
        return False
    if boot is None or run.heartbeat_at is None:
        return False
    began = datetime.fromtimestamp(int(boot[1]) + ticks / os.sysconf("SC_CLK_TCK"), UTC)
    return began > run.heartbeat_at + CLOCK_GRAIN


def ask_to_stop(name: str, *, after_cell: bool, url: str | None = None) -> str:
    """Store the request, on which the run's own process acts. Returns what will happen."""
    store = open_store(store_url(url), create=False)
    with store.write() as connection:
        run = runs.lock_run(connection, runs.get_run(connection, name))
        if run.state.ended:
            return f"{run.name} has ended already ({run.state})."
        asked = StopRequest.CELL if after_cell else StopRequest.NOW
        sooner = run.stop_requested is StopRequest.NOW  # a later request does not revoke an earlier one
        runs.request_stop(connection, run.id, StopRequest.NOW if sooner else asked)
        heard = is_worked_on(connection, run)
    when = "after this cell" if after_cell and not sooner else "after this iteration"
    if heard:
        return f"{run.name} stops {when}, then restores its VMs. Check: vnuma status"
    return f"{run.name} has no running process. Restore its VMs: vnuma restore --run {run.name}"
