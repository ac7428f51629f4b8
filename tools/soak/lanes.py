"""Parallel campaigns: each lane is a process with its own lab, home, and share of the strikes."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from queue import Empty

from tools.soak.bare import BareRun
from tools.soak.ground import Ground, Stuck
from tools.soak.points import Chooser, Strike, Tally, kinds_of
from tools.soak.supervised import SupervisedRun
from vnuma import lab

LaneKind = type[BareRun] | type[SupervisedRun]
KINDS: tuple[LaneKind, ...] = (SupervisedRun, BareRun)
"""They take turns; strikes at a whole run cost ten times as much and come first."""

_FORKS = get_context("fork")


@dataclass(frozen=True)
class Turn:
    """Shared by all lanes: the seed, their number, the end time, and folders."""

    seed: int
    lanes: int
    deadline: float
    folder: Path
    keep: Path | None
    strikes: tuple[Strike, ...]


class Lanes:
    """The running lanes. Each reports after every campaign."""

    def __init__(self, turn: Turn) -> None:
        self._told: Queue[tuple[int, Tally | None]] = _FORKS.Queue()
        self._enough = _FORKS.Event()
        self._by_lane: dict[int, Tally] = {}
        self._lanes = [
            _FORKS.Process(target=_work, args=(lane, turn, self._told, self._enough))
            for lane in range(turn.lanes)
        ]
        for lane in self._lanes:
            lane.start()

    @property
    def found(self) -> Tally:
        """What all lanes have done and found so far."""
        found = Tally()
        for tally in self._by_lane.values():
            found.add(tally)
        return found

    def tallies(self, patience_until: float) -> Iterator[Tally]:
        """The findings so far after each campaign, until the last lane has ended."""
        working = set(range(len(self._lanes)))
        while working:
            try:
                lane, tally = self._told.get(timeout=5)
            except Empty:
                lost = {lane for lane in working if not self._lanes[lane].is_alive()}
                late = working if time.monotonic() > patience_until else set()
                for lane in lost | late:
                    words = "did not end" if lane in late else "died"
                    self._by_lane.setdefault(lane, Tally()).stuck.append(f"lane {lane} {words}")
                working -= lost | late
                continue
            if tally is None:
                working.discard(lane)
            else:
                self._by_lane[lane] = tally
                yield self.found

    def enough(self) -> None:
        """Start no further campaign."""
        self._enough.set()

    def close(self) -> None:
        """End the lanes still running."""
        for lane in self._lanes:
            if lane.is_alive():
                lane.terminate()
            lane.join()


def _work(lane: int, turn: Turn, told: Queue[tuple[int, Tally | None]], enough: Event) -> None:
    """Campaign after campaign, of each kind in turn."""
    tally = Tally()
    mine = {kind: kinds_of(kind.VICTIMS, lane, turn.lanes, turn.strikes) for kind in KINDS}
    choosers = {kind: Chooser(turn.seed, points, tally) for kind, points in mine.items() if points}
    for number in count():
        kind = list(choosers)[(number + lane) % len(choosers)]
        _campaign(f"lane {lane}, campaign {number + 1}", kind, choosers[kind], turn, tally)
        told.put((lane, deepcopy(tally)))
        if enough.is_set() or tally.bad or time.monotonic() > turn.deadline:
            break
    told.put((lane, None))


def _campaign(name: str, kind: LaneKind, chooser: Chooser, turn: Turn, tally: Tally) -> None:
    with tempfile.TemporaryDirectory(dir=turn.folder) as home, ExitStack() as after:
        ground = Ground(lab.ready_program(), Path(home), name, kind.VMS, tally)
        after.callback(ground.close)
        os.environ["VNUMA_HOME"] = str(ground.home)
        campaign = kind(ground, turn.seed + tally.runs)
        after.callback(campaign.close)
        try:
            campaign.strike(chooser, turn.deadline)
        except Stuck as error:
            tally.stuck.append(str(error))
        if tally.bad and turn.keep:
            _keep(ground, turn.keep)


def _keep(ground: Ground, where: Path) -> None:
    """Keep store and logs of a failed campaign."""
    where.mkdir(parents=True, exist_ok=True)
    logs = (*ground.folder.glob("*.log"), *(ground.folder / "lab").glob("*.jsonl"))
    crashes = ground.home.glob("crashes/*")
    for file in (*logs, *ground.home.glob("vnuma.*"), *ground.home.glob("*.log"), *crashes):
        (where / file.name).write_bytes(file.read_bytes())
