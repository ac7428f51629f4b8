"""What a campaign stands on: a fast lab, the VMs as they were, and the checks after each blow."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.lab import LabHandle, start_lab
from tests.support.looking import settings_of
from tools.soak import checks
from tools.soak.points import Point, Tally
from tools.soak.watch import Watch

PATIENCE_S = 180.0
"""How long anything may take on a busy machine before it counts as stuck."""

RUN = "small.1"
ITERATIONS = 3
STUDY: dict[str, Any] = {
    "limits": {"attempts_per_cell": 10, "max_failed_cells": 99},
    "power": {"tools_timeout_s": 60, "sql_timeout_s": 60, "shutdown_timeout_s": 60},
    "workload": {"sizes": [40]},
}
_FAST = {"tools_seconds": 0.06, "sql_seconds": 0.04, "shutdown_seconds": 0.04, "task_seconds": 0.02}


class Stuck(RuntimeError):
    """A run that neither went on nor ended."""


@dataclass
class Ground:
    """A lab with a host for each VM, and a home. `seen` are the samples that were there at the last look."""

    program: Path
    folder: Path
    name: str
    vms: tuple[str, ...]
    tally: Tally
    seen: Counter[checks.Key] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        hosts = [{"name": f"esx-{name}"} for name in self.vms]
        machines = [{"name": name, "host": f"esx-{name}", "memory_gb": 32} for name in self.vms]
        scenario = {"hosts": hosts, "vms": machines, "boot": _FAST}
        self.lab: LabHandle = start_lab(self.program, self.folder / "lab", scenario, {})
        self.before = settings_of(self.lab, self.vms)
        self.watch = Watch(self.lab, self.folder, RUN)

    def check(self, point: Point) -> None:
        """After a blow: nothing lost, nothing twice, every VM at its baseline or protected."""
        if not self.watch.knows_run():
            return
        where = f"[{self.name}, {point.words}] "
        store = self.watch.store
        self.tally.lost += [where + words for words in checks.lost(store, RUN, self.seen, ITERATIONS)]
        self.seen = checks.sample_keys(store, RUN)
        self.tally.altered += [where + words for words in checks.altered(self.lab, store, RUN, self.before)]

    def check_end(self) -> None:
        """After a run that was let go to its end: every cell valid, every VM as it was."""
        store = self.watch.store
        self.tally.stuck += checks.unfinished(store, RUN)
        self.tally.lost += checks.lost(store, RUN, self.seen, ITERATIONS)
        after = settings_of(self.lab, self.vms)
        self.tally.altered += [
            f"{self.name}: {name} ended as {after[name]}"
            for name in self.vms
            if after[name] != self.before[name]
        ]
        self.tally.runs += 1

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Come back as soon as the condition holds. Raises Stuck."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise Stuck(f"{self.name}: no {what}")
            time.sleep(0.01)
