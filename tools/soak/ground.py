"""What a campaign stands on: a fast lab, the VMs as they were, and the checks after each strike."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.lab import LabHandle, start_lab
from tests.support.looking import settings_of
from tests.support.proxy import Proxy, proxy_before
from tests.support.sql_relay import SqlRelay, sql_relay
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


_CLOCKS = {"clock_minutes": 8}, {"clock_minutes": -11}
"""How far the clocks of a host and of a guest are ahead of vCenter's."""


def mounted(folder: Path) -> bool:
    """Make the folder a small file system of its own, which can be filled; False if not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@dataclass
class Ground:
    """A lab with a host for each VM, what stands before its vCenter and SQL Servers, a home on its own disk.

    `seen` are the samples that were there at the last look.
    """

    program: Path
    folder: Path
    name: str
    vms: tuple[str, ...]
    tally: Tally
    seen: Counter[checks.Key] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._after = ExitStack()
        self.home = self.folder / "home"
        self.home.mkdir()
        if mounted(self.home):
            self._after.callback(subprocess.run, ["umount", "--lazy", str(self.home)], check=True)
        host, guest = _CLOCKS
        hosts = [{"name": f"esx-{name}", **host} for name in self.vms]
        machines = [{"name": n, "host": f"esx-{n}", "memory_gb": 32, "around": guest} for n in self.vms]
        scenario = {"hosts": hosts, "vms": machines, "boot": _FAST}
        self.lab: LabHandle = start_lab(self.program, self.folder / "lab", scenario, {})
        self._after.callback(self.lab.stop)
        self.proxy: Proxy = self._after.enter_context(proxy_before(self.lab, self.folder))
        self.sql_relays: dict[str, SqlRelay] = {
            name: self._after.enter_context(sql_relay(end.host, end.port))
            for name, end in self.lab.vms.items()
        }
        self.before = settings_of(self.lab, self.vms)
        self.watch = Watch(self.lab, self.home, RUN)

    def close(self) -> None:
        """End the lab and what stands before it."""
        self._after.close()

    def differing(self) -> dict[str, dict[str, Any]]:
        """VMs that are not as they were before the run, with how they are."""
        after = settings_of(self.lab, self.vms)
        return {name: now for name, now in after.items() if now != self.before[name]}

    def check_code(self, code: int, allowed: frozenset[int], words: str) -> None:
        """After a run that ended by itself: its code says whether every VM is as it was, and none is off."""
        where, away = f"[{self.name}, {words}] ", self.differing()
        if away and code != 7:
            self.tally.codes.append(f"{where}ended with {code}, and VMs are {away}")
        if not away and code not in allowed:
            self.tally.codes.append(f"{where}ended with {code}, and every VM is as it was")
        for name, now in away.items():
            if now["power"] != self.before[name]["power"]:
                self.tally.off.append(f"{where}{name} is {now['power']}")

    def check_restored(self, code: int | None) -> None:
        """After `vnuma restore` that a person gave while the run was frozen."""
        away = self.differing()
        if code not in ((7, 8, 9) if away else (0, 7, 8, 9)):
            self.tally.codes.append(f"[{self.name}] restore ended with {code}, and VMs are {away}")

    def check(self, point: Point) -> None:
        """After a strike: nothing lost, nothing twice, every VM at its baseline or protected."""
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
        self.tally.altered += [
            f"{self.name}: {name} ended as {now}" for name, now in self.differing().items()
        ]
        self.tally.runs += 1

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Come back as soon as the condition holds. Raises Stuck."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise Stuck(f"{self.name}: no {what}")
            time.sleep(0.01)
