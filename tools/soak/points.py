"""Where a run is struck: the stage of a cell, the process, and the strike; drawn from the seed."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Stage(StrEnum):
    """The stage of a cell or run."""

    CLAIM = "claim"
    POWER_OFF = "power off"
    RECONFIGURE = "reconfigure"
    POWER_ON = "power on"
    WAITING = "waiting"
    QUERY = "query"
    STORING = "storing"
    RESTORE = "restore"


class Victim(StrEnum):
    """The process that is struck, or the environment."""

    ENGINE = "engine"
    PLAYBOOK = "ansible-playbook"
    WORKER = "worker"
    ALL = "all processes"
    AROUND = "surroundings"


class Strike(StrEnum):
    """The strike: a signal, or a fault of the environment, described at its function in `faults`."""

    INT = "INT"
    TERM = "TERM"
    KILL = "KILL"
    BAD_ANSWERS = "bad answers"
    HANDSHAKE = "TLS handshake"
    SQL_HANDSHAKE = "SQL handshake"
    SERVERS = "servers"
    FOREIGN_WRITE = "foreign write"
    DISK = "full disk"
    DESCRIPTORS = "descriptors"
    FREEZE = "freeze"
    FREEZE_RESTORE = "freeze, restore"
    WRITE_RESTORE = "write, restore"
    WRITE_AUDIT = "write, audit"
    WRITE_RESUME = "write, resume"
    SLOW_GUEST = "slow guest"
    VCENTER_GONE = "vCenter gone"
    AUDIT_FILE = "audit file"
    DROPPED = "dropped"

    @property
    def signal(self) -> signal.Signals:
        """The signal of that name. Raises KeyError for a fault."""
        return signal.Signals[f"SIG{self}"]


PROCESSES = tuple(victim for victim in Victim if victim is not Victim.AROUND)

SIGNALS = (Strike.INT, Strike.TERM, Strike.KILL)

FAULT_STRIKES = tuple(strike for strike in Strike if strike not in SIGNALS)
"""What can strike a whole `vnuma run` besides signals."""


@dataclass(frozen=True)
class Point:
    """One strike: when, whom, with what, and how long after the stage was seen to begin."""

    stage: Stage
    victim: Victim
    strike: Strike
    delay_s: float

    @property
    def kind(self) -> StrikeKind:
        """The kind of strike, whenever it comes."""
        return self.stage, self.victim, self.strike

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.strike} to {self.victim} in {self.stage}, {self.delay_s * 1000:.0f} ms in"


StrikeKind = tuple[Stage, Victim, Strike]


_CHANGED = (Stage.RECONFIGURE, Stage.POWER_ON, Stage.QUERY)
"""Stages in which a VM differs from its baseline: off, booting, and on."""

_ONLY_IN: Mapping[Strike, tuple[Stage, ...]] = {
    Strike.FOREIGN_WRITE: (Stage.POWER_OFF, Stage.RESTORE),
    **dict.fromkeys((Strike.WRITE_RESTORE, Strike.WRITE_AUDIT, Strike.WRITE_RESUME), _CHANGED),
    **dict.fromkeys((Strike.VCENTER_GONE, Strike.AUDIT_FILE), _CHANGED),
    Strike.SLOW_GUEST: (Stage.CLAIM, Stage.STORING),
    Strike.DROPPED: (Stage.QUERY, Stage.STORING),
}


def _can_strike(stage: Stage, fault: Strike) -> bool:
    """Whether a fault can strike there: no VM remains at the end for others to restore, and no study here
    changes what only SQL Server can restore.
    """
    if fault in _ONLY_IN:
        return stage in _ONLY_IN[fault]
    return fault not in (Strike.FREEZE_RESTORE, Strike.SQL_HANDSHAKE) or stage is not Stage.RESTORE


EVERY: tuple[StrikeKind, ...] = (
    *((stage, victim, number) for stage in Stage for victim in PROCESSES for number in SIGNALS),
    *((stage, Victim.AROUND, it) for stage in Stage for it in FAULT_STRIKES if _can_strike(stage, it)),
)
"""Every stage with every process and signal, and with every fault: each is to be struck at least once."""


class Chooser:
    """Chooses the next strike: the least often struck, drawn from the seed.

    The stage is drawn too, since striking at the first opportunity would kill runs early and never reach late
    stages.
    """

    def __init__(self, seed: int, strikes: Sequence[Strike], tally: Tally) -> None:
        self._draw = random.Random(f"{seed} {strikes}")
        self._mine = [kind for kind in EVERY if kind[2] in strikes]
        self._tally = tally

    def next(self) -> Point:
        """One of the kinds of strike that were tried least often."""
        least = min(map(self._tally.weight, self._mine))
        return self._point(self._draw.choice([one for one in self._mine if self._tally.weight(one) == least]))

    def at_restore(self) -> Point | None:
        """A point in a restore that happens anyway, since the run was told to stop; None after enough of
        them.
        """
        least = min(map(self._tally.weight, self._mine))
        turn = [kind for kind in self._mine if kind[0] is Stage.RESTORE]
        turn = [kind for kind in turn if self._tally.weight(kind) <= least + 1]
        return self._point(self._draw.choice(turn)) if turn else None

    def _point(self, kind: StrikeKind) -> Point:
        return Point(*kind, self._draw.uniform(0, 0.06))


@dataclass
class Tally:
    """What was done and found. `codes` are exit codes that do not match the VMs' state."""

    struck: Counter[StrikeKind] = field(default_factory=Counter)
    missed: Counter[StrikeKind] = field(default_factory=Counter)
    """Points whose process or stage had ended before the signal."""
    runs: int = 0
    lost: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    off: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    silence_s: float = 0.0
    """The longest time that a living run said nothing."""

    @property
    def wrong(self) -> list[str]:
        """Everything that must not be, in words."""
        return [*self.lost, *self.altered, *self.off, *self.codes, *self.stuck]

    @property
    def total(self) -> int:
        """Strikes that were in time."""
        return self.struck.total()

    @property
    def good(self) -> bool:
        """Whether nothing was, and something was tried."""
        return self.total > 0 and not self.wrong

    @property
    def never(self) -> list[StrikeKind]:
        """What was not struck even once."""
        return [kind for kind in EVERY if not self.struck[kind]]

    def count(self, point: Point, *, struck: bool) -> None:
        """Count a point that was struck or missed."""
        (self.struck if struck else self.missed)[point.kind] += 1

    def weight(self, kind: StrikeKind) -> float:
        """How often a kind was tried; a missed one counts a third."""
        return self.struck[kind] + self.missed[kind] / 3

    def report(self) -> str:
        """Counts by stage and what was struck, what was never struck, and what went wrong."""
        never = [", ".join(kind) for kind in self.never]
        rows = [
            *_table(self.struck),
            "",
            f"{self.total} strikes, {self.missed.total()} came too late, {self.runs} runs completed",
            f"{len(EVERY) - len(never)} of {len(EVERY)} kinds of strike struck at least once",
            *(f"  never: {words}" for words in never),
            f"lost or doubled samples: {len(self.lost)}, altered VMs: {len(self.altered)}, "
            f"left off: {len(self.off)}, wrong exit codes: {len(self.codes)}, stuck runs: {len(self.stuck)}",
            f"longest silence of a run: {self.silence_s:.0f} s",
        ]
        return "\n".join([*rows, *self.wrong])


def _table(struck: Counter[StrikeKind]) -> Iterator[str]:
    """A row for each process and signal, and for each fault; a column for each stage."""
    yield f"{'':24}" + "".join(f"{stage:>12}" for stage in Stage) + f"{'all':>6}"
    for victim, strike in dict.fromkeys(kind[1:] for kind in EVERY):
        counts = [struck[stage, victim, strike] for stage in Stage]
        name = strike if victim is Victim.AROUND else f"{victim} {strike}"
        yield f"{name:24}" + "".join(f"{count:>12}" for count in counts) + f"{sum(counts):>6}"
