"""Seeing where a run is: its step in the store, and what the lab tells of the VM."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection
from pathlib import Path

from tests.support.lab import LabHandle
from tools.bench.processes import PROC, descendants
from tools.soak.points import Stage, Victim
from vnuma.errors import VnumaError
from vnuma.store import attempts, runs, samples
from vnuma.store.open import Store, open_store

TICK_S = 0.004


class Watch:
    """Eyes on one run. Reads the store and the lab's events; changes nothing."""

    def __init__(self, lab: LabHandle, home: Path, run: str) -> None:
        self._events = lab.folder / "events.jsonl"
        self._database = home / "vnuma.db"
        self._store: Store | None = None
        self._run = run
        self._offset = 0
        self._last_event = ""
        self._samples = 0

    def step(self) -> str | None:
        """The step of the attempt under way; None between attempts."""
        try:
            with self.store.read() as connection:
                run = runs.get_run(connection, self._run)
                self._samples = samples.count(connection, run.id)
                open_now = [a for a in attempts.lines_of_run(connection, run.id) if a.ended_at is None]
        except VnumaError:  # the store is being made
            return None
        return open_now[-1].step if open_now else None

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

    def begins(self, stage: Stage, until: Callable[[], bool]) -> bool:
        """Wait until that stage begins; False when `until` holds before."""
        return self.first_of([stage], until) is not None

    def first_of(self, stages: Collection[Stage], until: Callable[[], bool]) -> Stage | None:
        """Wait until one of the stages begins, and say which; None when `until` holds before."""
        self._news()
        self._last_event = ""
        self.step()
        before = self._samples
        while not until():
            self._news()
            step = self.step()
            for stage in stages:
                if self._is(stage, step, before):
                    return stage
            time.sleep(TICK_S)
        return None

    def _is(self, stage: Stage, step: str | None, samples_before: int) -> bool:
        measuring = bool(step and step.startswith("measure"))
        return {
            Stage.CLAIM: step == "claim",
            Stage.POWER_OFF: step == "shutdown" and self._last_event != "power_off",
            Stage.RECONFIGURE: step == "shutdown" and self._last_event == "power_off",
            Stage.POWER_ON: step == "power_on" and self._last_event != "boot",
            Stage.WAITING: self._last_event in {"boot", "tools_running"} or step == "guest_ready",
            Stage.QUERY: measuring,
            Stage.STORING: measuring and self._samples > samples_before,
            Stage.RESTORE: step is None and self._last_event == "power_off",
        }[stage]

    def _news(self) -> None:
        """The latest event that the lab has told since the last look."""
        with self._events.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                self._last_event = str(json.loads(line)["event"])


def process_of(victim: Victim, engine: int) -> int | None:
    """The process to strike: the engine, its play, or a worker of that play; None when it is not there."""
    if victim is Victim.ENGINE:
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


def _command(pid: int) -> bytes:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
