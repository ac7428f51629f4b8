"""After a death: find runs without a living supervisor and make them ready to go on."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from vnuma.domain.study_file import parse_study
from vnuma.engine.context import home_folder
from vnuma.engine.left import left_vms
from vnuma.engine.progress import Progress, progress_of
from vnuma.engine.restore_any import restore_any
from vnuma.engine.target import AnyTarget
from vnuma.errors import VmHeld
from vnuma.store import runs
from vnuma.store.open import Store
from vnuma.store.rows import Run
from vnuma.store.states import RunState
from vnuma.store.types import utc_now

# A supervisor on another machine counts as dead after this long without a heartbeat; it beats each second.
SILENT_AFTER = timedelta(minutes=2)

# The start of a process is known to about a second.
CLOCK_GRAIN = timedelta(seconds=2)


@dataclass(frozen=True)
class Found:
    """A run whose controller died: what it was doing when it did."""

    run: Run
    progress: Progress
    words: str


def is_alive(run: Run) -> bool:
    """Whether a supervisor looks after this run: its process lives here, or it was heard of lately."""
    if run.supervisor_pid is None:
        return False
    if run.supervisor_host == socket.gethostname():
        return process_lives(run.supervisor_pid) and not _is_another(run)
    return run.heartbeat_at is not None and utc_now() - run.heartbeat_at < SILENT_AFTER


def look_after(store: Store, run: Run) -> None:
    """Make this process the one that looks after the run, before it touches a VM.

    Raises VmHeld while another does.
    """
    with store.write() as connection:
        refuse_if_alive(runs.lock_run(connection, run.id))
        runs.touch_supervisor(connection, run.id, pid=os.getpid(), host=socket.gethostname())


def refuse_if_alive(run: Run) -> None:
    """Raise VmHeld when a process other than this one looks after the run."""
    if is_alive(run) and (run.supervisor_pid, run.supervisor_host) != (os.getpid(), socket.gethostname()):
        raise VmHeld(
            f"{run.name} is running: process {run.supervisor_pid} on {run.supervisor_host} looks after it.",
            fix=f"vnuma status, or vnuma stop {run.name}",
        )


def reopen(store: Store, name: str) -> Found:
    """Make a run ready to go on. Taking its VMs over settles what was unfinished.

    Raises VmHeld when its supervisor lives, InputError for a run that came out of an archive.
    """
    with store.read() as connection:
        run = runs.get_run(connection, name)
        runs.refuse_imported(connection, run.id)
        progress = progress_of(connection, run.name)
    refuse_if_alive(run)
    words = _what_it_did(progress)
    with store.write() as connection:
        runs.request_stop(connection, run.id, None)
    return Found(run, progress, words)


def _what_it_did(progress: Progress) -> str:
    busy = [vm for vm in progress.vms if vm.step]
    if not busy:
        return "no cell was under way"
    return "; ".join(f"{vm.name}: block {vm.block}, {vm.label}, step {vm.step}" for vm in busy)


def process_lives(pid: int) -> bool:
    """Whether a process of that number runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_another(run: Run) -> bool:
    """Whether the process with the supervisor's number began after the supervisor was last heard of."""
    began = _began(run.supervisor_pid or 0)
    return began is not None and run.heartbeat_at is not None and began > run.heartbeat_at + CLOCK_GRAIN


def _began(pid: int) -> datetime | None:
    """When a process began (proc(5): btime, and field 22 of stat); None where there is no /proc."""
    try:
        boot = re.search(r"^btime (\d+)", Path("/proc/stat").read_text(), re.MULTILINE)
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return None
    return datetime.fromtimestamp(int(boot[1]) + ticks / os.sysconf("SC_CLK_TCK"), UTC) if boot else None


def put_back_dead(store: Store, targets: Mapping[str, AnyTarget]) -> list[str]:
    """Put back those of these VMs that a dead run left changed; sentences about what was done.

    Raises NotAtBaseline or RestoreConflict when one cannot be put back: it may not be studied then.
    """
    said = []
    with store.read() as connection:
        left = left_vms(connection)
    for vm, run in left:
        if vm.name not in targets or is_alive(run):
            continue
        with store.read() as connection:
            study = parse_study(runs.get_study(connection, run.study_id).yaml, f"study of {run.name}")
        done = restore_any(store, run, study, vm, targets[vm.name], home=home_folder())
        with store.write() as connection:
            runs.set_run_state(connection, run.id, RunState.STOPPED)
        said.append(f"Put back  {done.words} (left by {run.name}, whose controller died)")
    return said
