"""The environment of a campaign: a fast lab, the VMs' original state, and the checks after each strike."""

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
from vnuma.engine.audit.log_file import verify_store

PATIENCE_S = 180.0
"""Time limit for anything on a busy machine before it counts as stuck."""

RUN = "small.1"
ITERATIONS = 3
SHUTDOWN_S = 15
"""How long the run waits for a guest; a later one is watched."""

STUDY: dict[str, Any] = {
    "limits": {"attempts_per_cell": 10, "max_failed_cells": 99},
    "power": {"tools_timeout_s": 60, "sql_timeout_s": 60, "shutdown_timeout_s": SHUTDOWN_S},
    "workload": {"sizes": [40]},
}
_FAST = {"tools_seconds": 0.06, "sql_seconds": 0.04, "shutdown_seconds": 0.04, "task_seconds": 0.02}


class Stuck(RuntimeError):
    """A run that neither continued nor ended."""


_CLOCKS = {"clock_minutes": 8}, {"clock_minutes": -11}
"""How far the clocks of a host and a guest are ahead of vCenter's."""


def mounted(folder: Path) -> bool:
    """Make the folder a small file system of its own, which can be filled; False if not allowed."""
    command = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@dataclass
class Ground:
    """A lab with one host per VM, proxies for its vCenter and SQL Servers, and a home on its own disk.

    `seen` are the samples at the last check.
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
        """End the lab and the proxies."""
        self._after.close()

    def differing(self) -> dict[str, dict[str, Any]]:
        """VMs that differ from their state before the run, with the differences."""
        after = settings_of(self.lab, self.vms)
        return {name: now for name, now in after.items() if now != self.before[name]}

    def check_code(self, code: int, allowed: frozenset[int], words: str) -> None:
        """After a run that ended by itself: its code must say whether every VM is restored and on."""
        where, away = f"[{self.name}, {words}] ", self.differing()
        if away and code != 7:
            self.tally.codes.append(f"{where}ended with {code}, and VMs are {away}")
        if not away and code not in allowed:
            self.tally.codes.append(f"{where}ended with {code}, and every VM is as it was")
        for name, now in away.items():
            if now["power"] != self.before[name]["power"]:
                self.tally.off.append(f"{where}{name} is {now['power']}")

    def check_restored(self, code: int | None) -> None:
        """After a person's `vnuma restore` while the run was frozen."""
        away = self.differing()
        if code not in ((7, 8, 9) if away else (0, 7, 8, 9)):
            self.tally.codes.append(f"[{self.name}] restore ended with {code}, and VMs are {away}")

    def check_by_hand(self, code: int | None, words: str) -> None:
        """After a person's command that had to restore every VM."""
        away = self.differing()
        if code or away:
            self.tally.codes.append(f"[{self.name}] vnuma {words} ended with {code}, and VMs are {away}")
        self.tally.off += [
            f"[{self.name}] {name} is {now['power']}"
            for name, now in away.items()
            if now["power"] == "poweredOff"
        ]

    def check(self, point: Point) -> None:
        """After a strike: nothing lost, nothing doubled, every VM at its baseline or protected."""
        if not self.watch.knows_run():
            return
        where = f"[{self.name}, {point.words}] "
        store = self.watch.store
        self.tally.lost += [where + words for words in checks.lost(store, RUN, self.seen, ITERATIONS)]
        self.seen = checks.sample_keys(store, RUN)
        self.tally.altered += [where + words for words in checks.altered(self.lab, store, RUN, self.before)]

    def check_end(self) -> None:
        """After a complete run: every cell valid, every VM as before, the audit log intact."""
        store = self.watch.store
        self.tally.stuck += checks.unfinished(store, RUN)
        self.tally.lost += checks.lost(store, RUN, self.seen, ITERATIONS)
        self.tally.altered += [
            f"{self.name}: {name} ended as {now}" for name, now in self.differing().items()
        ]
        if problem := verify_store(store, None).problem:
            self.tally.lost.append(f"{self.name}: {problem.what}")
        self.tally.runs += 1

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Return as soon as the condition is true. Raises Stuck."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise Stuck(f"{self.name}: no {what}")
            time.sleep(0.01)
