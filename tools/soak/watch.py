"""Observe a run: the step of each VM's attempt in the store, and the lab's events about the VM."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import text

from tests.support.lab import LabHandle
from tools.bench.processes import PROC, descendants
from tools.soak.points import Stage, Victim
from vnuma.errors import VnumaError
from vnuma.store import attempts, leases, runs
from vnuma.store.open import Store, open_store
from vnuma.store.rows import AttemptLine

TICK_S = 0.004
LOOK_S = 0.05
"""The store is read when its files have changed, and at least this often: a change within a tick of the
kernel's clock leaves no trace in a file's time."""

FOUND_S = 1.0
"""How long a process is looked for."""


class Watch:
    """Observer of one run. Reads the store and the lab's events; changes nothing."""

    def __init__(self, lab: LabHandle, home: Path, run: str) -> None:
        self._events = lab.folder / "events.jsonl"
        self._database = home / "vnuma.db"
        self._files = (self._database, home / "vnuma.db-wal")
        self._store: Store | None = None
        self._run = run
        self._offset = 0
        self._last_event: dict[str, str] = {}
        self._open: dict[str, AttemptLine] = {}
        self._samples: Counter[int] = Counter()
        self._dead = 0
        self._newest = 0
        self._files_then: object = None
        self._looked_at = 0.0

    def knows_run(self) -> bool:
        """Whether the run is stored by now."""
        try:
            with self.store.read() as connection:
                runs.get_run(connection, self._run)
        except VnumaError:
            return False
        return True

    @property
    def store(self) -> Store:
        """The run's store. StoreError until it is there."""
        if self._store is None:
            self._store = open_store(f"sqlite:///{self._database}", create=False)
        return self._store

    def bury(self) -> None:
        """Treat the attempts so far as dead: none of their stages can be struck."""
        self._look()
        self._dead = self._newest

    def begins(self, stage: Stage, until: Callable[[], bool]) -> bool:
        """Wait until that stage starts; False when `until` is true before."""
        self._news()
        self._last_event.clear()
        self._look()
        before = Counter(self._samples)
        while not until():
            self._news()
            self._look_if_changed()
            if any(self._is(stage, vm, before) for vm in {*self._open, *self._last_event}):
                return True
            time.sleep(TICK_S)
        return False

    def _is(self, stage: Stage, vm: str, samples_before: Counter[int]) -> bool:
        attempt, event = self._open.get(vm), self._last_event.get(vm)
        if attempt is None:
            return stage is Stage.RESTORE and event == "power_off"
        if attempt.id <= self._dead:
            return False
        step = attempt.step or ""
        measuring = step.startswith("measure")
        return {
            Stage.CLAIM: step == "claim",
            Stage.POWER_OFF: step == "shutdown" and event != "power_off",
            Stage.RECONFIGURE: step == "shutdown" and event == "power_off",
            Stage.POWER_ON: step == "power_on" and event != "boot",
            Stage.WAITING: step == "guest_ready",
            Stage.QUERY: measuring,
            Stage.STORING: measuring and self._samples[attempt.id] > samples_before[attempt.id],
            Stage.RESTORE: False,
        }[stage]

    def _look_if_changed(self) -> None:
        files = [_trace(file) for file in self._files]
        if files != self._files_then or time.monotonic() > self._looked_at + LOOK_S:
            self._files_then = files
            self._look()

    def _look(self) -> None:
        """Read each VM's attempt under way, and how many samples each attempt has."""
        self._looked_at = time.monotonic()
        try:
            with self.store.read() as connection:
                run = runs.get_run(connection, self._run)
                names = {row.id: row.name for row in leases.vms_of_run(connection, run.id)}
                lines = attempts.lines_of_run(connection, run.id)
                stored = connection.execute(
                    text("SELECT attempt_id, count(*) FROM sample GROUP BY attempt_id")
                )
                self._samples = Counter(dict(row._tuple() for row in stored))
        except VnumaError:  # the store is being made
            return
        self._open = {names[line.vm_id]: line for line in lines if line.ended_at is None}
        self._newest = lines[-1].id if lines else 0

    def _news(self) -> None:
        """The lab's latest event about each VM since the last look."""
        with self._events.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                told = json.loads(line)
                if "vm" in told:
                    self._last_event[told["vm"]] = str(told["event"])


def _trace(file: Path) -> tuple[int, int] | None:
    """What changes when a file is written; None while it is missing."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size


def _process_of(victim: Victim, engine: int) -> int | None:
    """The process to strike: the engine, its play, or a worker of that play; None when it is not there."""
    if victim in (Victim.ENGINE, Victim.ALL):
        return engine
    below = descendants(engine)
    plays = [pid for pid in below if b"ansible-playbook" in _command(pid)]
    if not plays:
        return None
    play = min(plays)
    if victim is Victim.PLAYBOOK:
        return play
    workers = descendants(play)
    return workers[-1] if workers else None


def found_process(victim: Victim, engine: int) -> int | None:
    """The process to strike, looked for a while, as a play has no worker between two tasks. None
    if absent.
    """
    until = time.monotonic() + FOUND_S
    found = _process_of(victim, engine)
    while found is None and time.monotonic() < until:
        time.sleep(TICK_S)
        found = _process_of(victim, engine)
    return found


def _command(pid: int) -> bytes:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def signalled(pid: int, number: int) -> bool:
    """Send a signal, or none for 0; False if the process has ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    return not signalled(pid, 0)
