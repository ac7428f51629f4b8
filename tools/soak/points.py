"""Where a run is struck: a stage of a cell, one of its processes, a signal. All drawn from the seed."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum


class Stage(StrEnum):
    """What a cell, or a run, is at."""

    CLAIM = "claim"
    POWER_OFF = "power off"
    RECONFIGURE = "reconfigure"
    POWER_ON = "power on"
    WAITING = "waiting"
    QUERY = "query"
    STORING = "storing"
    RESTORE = "restore"


class Victim(StrEnum):
    """Which process is struck."""

    ENGINE = "engine"
    PLAYBOOK = "ansible-playbook"
    WORKER = "worker"
    STEPS = "bare steps"


PLAYED = (Victim.ENGINE, Victim.PLAYBOOK, Victim.WORKER)
"""The processes of `vnuma run`; bare steps are a process of their own."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True)
class Point:
    """One blow: when, whom, with what, and how long after the stage was seen to begin."""

    stage: Stage
    victim: Victim
    signal: signal.Signals
    delay_s: float

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.signal.name} to {self.victim} in {self.stage}, {self.delay_s * 1000:.0f} ms in"


def points(seed: int) -> Iterator[Point]:
    """An endless row of points: each stage with each process and signal once, shuffled, then again."""
    draw = random.Random(seed)
    while True:
        row = [(stage, victim, number) for stage in Stage for victim in PLAYED for number in SIGNALS]
        draw.shuffle(row)
        for stage, victim, number in row:
            yield Point(stage, victim, number, draw.uniform(0, 0.06))


@dataclass
class Tally:
    """What was done and what was found."""

    struck: Counter[tuple[Stage, Victim, signal.Signals]] = field(default_factory=Counter)
    missed: int = 0
    """Points whose process or stage was over before the signal."""
    runs: int = 0
    lost: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Blows that landed."""
        return sum(self.struck.values())

    @property
    def good(self) -> bool:
        """Whether nothing was lost, doubled, left altered or stuck, and something was tried."""
        return self.total > 0 and not (self.lost or self.altered or self.stuck)

    def report(self) -> str:
        """Counts by stage and process, by signal, and what went wrong."""
        head = f"{'stage':12}" + "".join(f"{victim:>18}" for victim in Victim) + f"{'all':>6}"
        rows = [head]
        for stage in Stage:
            each = [
                sum(n for (s, v, _), n in self.struck.items() if (s, v) == (stage, victim))
                for victim in Victim
            ]
            rows.append(f"{stage:12}" + "".join(f"{count:>18}" for count in each) + f"{sum(each):>6}")
        signals = ", ".join(
            f"{number.name} {sum(n for (_, _, s), n in self.struck.items() if s == number)}"
            for number in SIGNALS
        )
        rows += [
            "",
            f"{self.total} kills ({signals}), {self.missed} came too late, {self.runs} runs completed",
            f"lost or doubled samples: {len(self.lost)}, altered VMs: {len(self.altered)}, "
            f"stuck runs: {len(self.stuck)}",
        ]
        return "\n".join([*rows, *self.lost, *self.altered, *self.stuck])
