"""The product's overhead per cell: studies of tiny cells on a fast lab.

Beside it: a play's rounds with as many tasks as a cell, all of which do nothing; and the same run whose store
is PostgreSQL, in turns on one lab, in pairs whose order alternates.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.support import postgresql
from tests.support.lab import LabHandle
from tests.support.site import write_inventory
from tools.bench import processes
from tools.bench.figure import Figure, limited, not_evaluated, spread
from tools.bench.labs import running
from tools.bench.processes import Memory
from vnuma.store import attempts, runs, samples
from vnuma.store.open import open_store

ARMS = ("1x16", "2x8")
NO_DELAYS = {"tools_seconds": 0, "sql_seconds": 0, "shutdown_seconds": 0, "task_seconds": 0}
TIMEOUT_S = 900
VNUMA = Path(sys.executable).parent / "vnuma"
PLAY = Path(__file__).with_name("plays") / "bare.yml"


@dataclass(frozen=True)
class Cell:
    """Seconds of one cell: the total up to the next claim, and what was not the product's."""

    wall: float
    sql: float
    boot: float

    @property
    def overhead(self) -> float:
        """The remainder."""
        return self.wall - self.sql - self.boot


def overhead(count: int) -> Iterator[Figure]:
    """One VM, `count` cells, and the same play without the product's work for comparison."""
    with _lab(1) as lab:
        memory = _run(lab, "cells", blocks=count // len(ARMS))
        cells = _cells_of(lab, "cells", _store_url(lab))
    rounds = min(count, 40)
    bare = (_play(rounds + 1) - _play(1)) / rounds
    edge = min(20, len(cells) // 3)
    every, first, last = ([cell.overhead for cell in part] for part in (cells, cells[:edge], cells[-edge:]))
    sql, boot = (1000 * median(part) for part in ([c.sql for c in cells], [c.boot for c in cells]))
    taken_off = f"SQL {sql:.0f} ms, vSphere tasks and boot {boot:.1f} ms"
    yield limited(
        f"Orchestration per cell, {len(cells) + 1} cells in one play",
        median(every),
        0.42,
        "s",
        peer=f"{median(every) / bare:.1f} x a bare Ansible play with as many tasks ({bare:.2f} s a round)",
        note=f"median {spread(every, unit='s')}; taken off: {taken_off}",
    )
    yield limited(
        f"The same, last {edge} cells against first {edge}",
        median(last) / median(first),
        1.2,
        "x",
        peer=f"{median(last):.2f} s against {median(first):.2f} s",
    )
    if processes.available():
        yield Figure("The same, largest process, peak resident memory", f"{memory.resident:.0f} MB")


def memory_per_vm(vms: int, blocks: int) -> Iterator[Figure]:
    """The play's processes with one VM and with several; on one host one is measured, the others wait."""
    what, limit = f"Memory per VM beyond the first, {vms} VMs in one play", 25
    if not processes.available():
        yield not_evaluated(what, f"< {limit} MB", "Read from /proc, which only Linux has.")
        return
    peaks = []
    for count in (1, vms):
        with _lab(count) as lab:
            names = [f"vm{number}" for number in range(1, count + 1)]
            peaks.append(_run(lab, "memory", names, blocks=blocks, pss=True))
    one, many = peaks
    yield limited(
        what,
        (many.proportional - one.proportional) / (vms - 1),
        limit,
        "MB",
        digits=1,
        peer=f"1 VM: {one.proportional:.0f} MB; {vms} VMs: {many.proportional:.0f} MB",
        note=f"peak PSS of the play's processes ({one.processes} and {many.processes}); the lab has one "
        "host, so one VM is measured and the others wait",
    )


def stores(blocks: int, pairs: int) -> Iterator[Figure]:
    """So many pairs of runs of two cells a block; each pair's ratio of median overheads of a cell."""
    what, limit = "A cell of a run on PostgreSQL, against SQLite", 1.2
    try:
        server = postgresql.start(postgresql.find_binaries())
    except pytest.skip.Exception as missing:
        yield not_evaluated(what, f"< {limit:g} x", str(missing))
        return
    try:
        with _lab(1) as lab:
            urls = {"sqlite": _store_url(lab), "postgresql": server.new_store()}
            took: dict[str, list[float]] = {kind: [] for kind in urls}
            for kind, url in urls.items():
                _run(lab, f"first-{kind}", blocks=3, store=url)  # what only a first run does
            for pair in range(pairs):
                for kind in sorted(urls, reverse=bool(pair % 2)):
                    _run(lab, f"{kind}{pair}", blocks=blocks, store=urls[kind])
                    cells = _cells_of(lab, f"{kind}{pair}", urls[kind])
                    took[kind].append(median(cell.overhead for cell in cells))
    finally:
        server.stop()
    ratios = [here / there for here, there in zip(took["postgresql"], took["sqlite"], strict=True)]
    yield limited(
        what,
        median(ratios),
        limit,
        "x",
        peer=f"{spread(took['postgresql'], unit='s')} against {spread(took['sqlite'], unit='s')} a cell",
        note=f"{pairs} pairs of runs of {2 * blocks} cells: {spread(ratios)} x; server on the same machine, "
        "Unix socket, fsync off",
    )


def _lab(vms: int) -> AbstractContextManager[LabHandle]:
    """That many VMs on a host on which nothing takes time."""
    machines = [{"name": f"vm{number}", "memory_gb": 16} for number in range(1, vms + 1)]
    return running({"name": "bench", "boot": NO_DELAYS, "vms": machines})


def _store_url(lab: LabHandle) -> str:
    """The store of this lab's home."""
    return f"sqlite:///{lab.folder / 'vnuma.db'}"


def _run(
    lab: LabHandle,
    name: str,
    vms: Sequence[str] = ("vm1",),
    *,
    blocks: int,
    pss: bool = False,
    store: str = "",
) -> Memory:
    """Run a study to its end, watching its processes: two arms, one execution of 400 rows a cell.

    Raises RuntimeError with its last words.
    """
    study = {
        "name": name,
        "vms": list(vms),
        "vcpus": 16,
        "reference": ARMS[0],
        "arms": list(ARMS),
        "design": {"blocks": blocks, "a_a": False, "sentinel": False, "warmups": 0, "iterations": 1},
        "workload": {"sizes": [20], "forms": ["client"]},
        "dataset": {"transaction_history_rows": 200, "sales_order_detail_rows": 200},
        "quiet": {"for_s": 0},
    }
    file, log = lab.folder / f"{name}.yml", lab.folder / "run.log"
    file.write_text(json.dumps(study), encoding="utf-8")  # JSON is YAML
    command = [str(VNUMA), "run", str(file), "-i", str(write_inventory(lab.folder, lab))]
    home = {"VNUMA_HOME": str(lab.folder), "VNUMA_STORE": store or _store_url(lab)}
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, env=os.environ | home, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        memory = processes.watch(process, 0.3 if pss else 1.0, TIMEOUT_S, proportional=pss)
    finally:
        _end(process)
    if process.returncode:
        last = log.read_text(encoding="utf-8")[-2000:]
        raise RuntimeError(f"vnuma run ended with {process.returncode}:\n{last}")
    return memory


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a run in progress, which also ends its play."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _cells_of(lab: LabHandle, name: str, url: str) -> list[Cell]:
    """Every cell except the last, which has no successor."""
    with open_store(url, create=False).read() as connection:
        run = runs.get_run(connection, f"{name}.1")
        tries = attempts.attempts_of_run(connection, run.id)
        sql: dict[int, float] = defaultdict(float)
        for stored in samples.iter_samples(connection, run.id):
            sql[stored.attempt_id] += (stored.sample.client_ms or 0) / 1000
    found = []
    boots = _boots(lab.events)
    for this, following in pairwise(tries):
        start, end = this.started_at.timestamp(), following.started_at.timestamp()
        boot = sum(took for at, took in boots if start <= at < end)
        found.append(Cell(end - start, sql[this.id], boot))
    return found


def _boots(events: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """The time of each power-on, and the seconds until SQL Server listened."""
    found, began = [], 0.0
    for event in events:
        at = datetime.fromisoformat(event["time"]).timestamp()
        if event["event"] == "boot":
            began = at
        elif event["event"] == "sql_listening":
            found.append((began, at - began))
    return found


def _play(rounds: int) -> float:
    """Wall time of a play that does nothing, without the user's own Ansible configuration."""
    command = [str(Path(sys.executable).parent / "ansible-playbook"), str(PLAY), "-i", "bench,"]
    with tempfile.TemporaryDirectory(prefix="vnuma-bench-") as folder:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        start = time.perf_counter()
        subprocess.run(
            [*command, "-c", "local", "-e", f"rounds={rounds}"],
            check=True,
            capture_output=True,
            cwd=folder,
            env=clean | {"ANSIBLE_LOCALHOST_WARNING": "false"},
        )
        return time.perf_counter() - start
