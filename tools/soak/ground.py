"""The environment of a campaign: a fast lab, the VMs' original state, and the checks after each strike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from tests.support.lab import LabHandle, start_lab
from tests.support.looking import settings_of
from tests.support.proxy import Proxy, proxy_before
from tests.support.site import ask_machine
from tests.support.sql_relay import SqlRelay, sql_relay
from tools.soak.points import Point, Tally
from tools.soak.watch import Watch
from vnuma.engine.audit.log import verify_store
from vnuma.store import attempts, cells, leases, runs, samples
from vnuma.store.open import Store
from vnuma.store.rows import CellState

Key = tuple[int, int, str, int, bool]
"""The place of a sample: attempt, size, form, iteration, warm-up."""

PATIENCE_S = 180.0
"""Time limit for anything on a busy machine before it counts as stuck."""

RUN = "small.1"
ITERATIONS = 3
VMS = ("a", "b")
SHUTDOWN_S = 15
"""How long the run waits for a guest; a later one is watched."""

STUDY: dict[str, Any] = {
    "limits": {"attempts_per_cell": 10, "max_failed_cells": 99},
    "power": {"tools_timeout_s": 60, "sql_timeout_s": 60, "shutdown_timeout_s": SHUTDOWN_S},
    "workload": {"sizes": [40]},
}
PROGRAMS: dict[str, Any] = {
    **STUDY,
    "all_arms": {"affinity": "physical_cores", "memory_reservation": "locked"},
    "workload": {
        "name": "command",
        "client": "driver",
        "guest": "sql_server",
        "study_setup": ["echo made >/var/tmp/bench"],
        "run": "sleep 0.2; echo tps = 5",
        "figure": {"name": "transactions", "unit": "1/s", "better": "higher", "regex": "^tps = (.+)"},
        "study_teardown": ["rm -f /var/tmp/bench"],
    },
}
"""A study whose programs run on a client, where a restore removes what they made."""

_FAST = {"tools_seconds": 0.06, "sql_seconds": 0.04, "shutdown_seconds": 0.04, "task_seconds": 0.02}


AWAY = frozenset({7})
"""The exit code of a command that left a VM away from its baseline."""


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

    `programs`: there is a client too, for the study PROGRAMS. `seen` are the samples at the last check.
    """

    program: Path
    folder: Path
    name: str
    tally: Tally
    programs: bool = False
    seen: Counter[Key] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._after = ExitStack()
        self.home = self.folder / "home"
        self.home.mkdir()
        if mounted(self.home):
            self._after.callback(subprocess.run, ["umount", "--lazy", str(self.home)], check=True)
        host, guest = _CLOCKS
        hosts = [{"name": f"esx-{name}", **host} for name in VMS]
        machines = [{"name": n, "host": f"esx-{n}", "memory_gb": 32, "around": guest} for n in VMS]
        scenario = {"hosts": hosts, "vms": machines, "boot": _FAST}
        if self.programs:
            scenario |= {"name": "loaded", "machines": [{"name": "driver"}]}
        self.lab: LabHandle = start_lab(self.program, self.folder / "lab", scenario, {})
        self._after.callback(self.lab.stop)
        self.proxy: Proxy = self._after.enter_context(proxy_before(self.lab, self.folder))
        self.sql_relays: dict[str, SqlRelay] = {
            name: self._after.enter_context(sql_relay(end.host, end.port))
            for name, end in self.lab.vms.items()
        }
        self.before = settings_of(self.lab, VMS)
        self.watch = Watch(self.lab, self.home, RUN)

    def close(self) -> None:
        """End the lab and the proxies."""
        self._after.close()

    def differing(self) -> dict[str, dict[str, Any]]:
        """VMs that differ from their state before the run, with the differences."""
        after = settings_of(self.lab, VMS)
        return {name: now for name, now in after.items() if now != self.before[name]}

    def made(self) -> bool:
        """Whether the study's programs have left something on the client."""
        return self.programs and bool(ask_machine(self.lab, "cat /var/tmp/bench 2>/dev/null || true"))

    def check_code(
        self, code: int | None, allowed: frozenset[int], words: str, away_with: frozenset[int] = AWAY
    ) -> None:
        """After a command that ended by itself: its code must say whether every VM is restored and on.

        Where others still work on the VMs, `away_with` has further codes, and a VM may be off.
        """
        where, away = f"[{self.name}, {words}] ", self.differing()
        if code not in (away_with if away else allowed):
            words = f"VMs are {away}" if away else "every VM is as it was"
            self.tally.codes.append(f"{where}ended with {code}, and {words}")
        if code in (0, 6, 130) and self.made():
            self.tally.altered.append(f"{where}ended with {code}, and left its file on the client")
        for name, now in away.items():
            if now["power"] != self.before[name]["power"] and away_with <= AWAY:
                self.tally.off.append(f"{where}{name} is {now['power']}")

    def check(self, point: Point) -> None:
        """After a strike: nothing lost, nothing doubled, every VM at its baseline or protected."""
        if not self.watch.knows_run():
            return
        where = f"[{self.name}, {point.words}] "
        store = self.watch.store
        self.tally.lost += [where + words for words in _lost(store, RUN, self.seen, ITERATIONS)]
        self.seen = _sample_keys(store, RUN)
        self.tally.altered += [where + words for words in _altered(self.lab, store, RUN, self.before)]

    def check_end(self) -> None:
        """After a complete run: every cell valid, every VM as before, the audit log intact."""
        store = self.watch.store
        self.tally.stuck += unfinished(store, RUN)
        self.tally.lost += _lost(store, RUN, self.seen, ITERATIONS)
        self.tally.altered += [
            f"{self.name}: {name} ended as {now}" for name, now in self.differing().items()
        ]
        if problem := verify_store(store).problem:
            self.tally.lost.append(f"{self.name}: {problem.what}")
        self.tally.runs += 1

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Return as soon as the condition is true. Raises Stuck."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise Stuck(f"{self.name}: no {what}")
            time.sleep(0.01)


def _altered(lab: LabHandle, store: Store, run_name: str, before: dict[str, Any]) -> list[str]:
    """Sentences about VMs that differ from their baseline without protection.

    A VM is protected if its baseline is stored, this run holds its lease, and it has the run's mark, so that
    every controller refuses it.
    """
    with store.read() as connection:
        run = runs.get_run(connection, run_name)
        rows = {row.name: row for row in leases.vms_of_run(connection, run.id)}
        held = {name: leases.get_lease(connection, row.vm_key) for name, row in rows.items()}
    wrong, seen = [], settings_of(lab, list(before))
    for name, wanted in before.items():
        now = seen[name]
        mark = now["keys"].pop("vnuma.run", None)
        if now == wanted and mark is None:
            continue
        row, lease = rows[name], held[name]
        if row.baseline is None or lease is None or lease.run_id != run.id:
            wrong.append(f"{name} is {now}, not {wanted}, and {run_name} holds no lease on it")
        elif now != wanted and (mark is None or json.loads(mark)["run"] != run_name):
            wrong.append(f"{name} is {now}, not {wanted}, and bears the mark {mark}")
    return wrong


def _sample_keys(store: Store, run_name: str) -> Counter[Key]:
    """How often each sample is stored, by its place."""
    with store.read() as connection:
        run = runs.get_run(connection, run_name)
        return Counter(
            (s.attempt_id, s.sample.size, s.sample.form, s.sample.iteration, s.sample.warmup)
            for s in samples.iter_samples(connection, run.id)
        )


def _lost(store: Store, run_name: str, earlier: Counter[Key], expected: int) -> list[str]:
    """Samples that are missing or doubled, and valid attempts with incomplete ones."""
    now = _sample_keys(store, run_name)
    wrong = [f"sample {key} of {run_name} is gone" for key in earlier if key not in now]
    wrong += [f"sample {key} of {run_name} is there {n} times" for key, n in now.items() if n > 1]
    with store.read() as connection:
        run = runs.get_run(connection, run_name)
        tried = attempts.lines_of_run(connection, run.id)
    held = Counter(key[0] for key in now.elements())
    valid = [attempt for attempt in tried if attempt.outcome == "valid"]
    wrong += [
        f"valid attempt {attempt.id} of {run_name} has {held[attempt.id]} samples, not {expected}"
        for attempt in valid
        if held[attempt.id] != expected
    ]
    twice = [cell for cell, count in Counter(attempt.cell_id for attempt in valid).items() if count > 1]
    return wrong + [f"cell {cell} of {run_name} has two valid attempts" for cell in twice]


def unfinished(store: Store, run_name: str) -> list[str]:
    """Cells without a valid attempt at the end of a run."""
    with store.read() as connection:
        run = runs.get_run(connection, run_name)
        states = [cell.state for cell in cells.cells_of_run(connection, run.id)]
    valid = states.count(CellState.VALID)
    return [] if valid == len(states) else [f"{run_name}: {valid} of {len(states)} cells valid"]


# A start of Python with these imports takes longer than all else before a play, and proves nothing: what is
# killed is the same command in the same kind of process.
_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "vnuma.cli.main",
        "vnuma.cli.progress",
        "vnuma.engine.lease.hours",
        "vnuma.engine.access.inventory",
        "vnuma.engine.run.supervise",
        "vnuma.store.migrate",
        "ansible_runner",
        "ansible.inventory.manager",
        "ansible.parsing.dataloader",
        "ansible.vars.manager",
    ]
)


def start_engine(words: list[str], home: Path, log: Path) -> ForkServerProcess:
    """Begin a `vnuma` command under this home, with its output at the end of that file."""
    engine = _FORKS.Process(target=_vnuma, args=(words, home, log))
    engine.start()
    return engine


def _vnuma(words: list[str], home: Path, log: Path) -> None:
    os.setsid()
    written = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, written), (2, written)):
        os.dup2(file, number)
    os.environ["VNUMA_HOME"] = str(home)
    sys.argv = ["vnuma", *words]
    from vnuma.cli.main import main  # noqa: PLC0415 - in the fork server, not in the soak itself

    main()
