"""The product's overhead per cell: a study of tiny cells on a fast lab."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from tools.bench import processes
from tools.bench.bare_play import bare_cell_seconds
from tools.bench.figure import Figure, below, not_evaluated, spread
from tools.bench.labs import NO_DELAYS, BenchLab, running
from tools.bench.processes import Memory
from vnuma.store import attempts, runs, samples
from vnuma.store.open import open_store

TIMEOUT_S = 900
ARMS = ("1x16", "2x8")


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


def study(name: str, vms: list[str], blocks: int) -> dict[str, Any]:
    """Two arms, one execution of 400 rows a cell."""
    return {
        "name": name,
        "vms": vms,
        "vcpus": 16,
        "reference": ARMS[0],
        "arms": list(ARMS),
        "design": {"blocks": blocks, "a_a": False, "sentinel": False, "warmups": 0, "iterations": 1},
        "workload": {"sizes": [20], "forms": ["client"]},
        "dataset": {"transaction_history_rows": 200, "sales_order_detail_rows": 200},
        "quiet": {"for_s": 0},
    }


def overhead(count: int) -> Iterator[Figure]:
    """One VM, `count` cells, and the same play without the product's work for comparison."""
    blocks = count // len(ARMS)
    with running(scenario(1)) as lab:
        memory = _run(lab, study("cells", ["vm1"], blocks), {}, pss=False)
        cells = cells_of(lab, "cells", lab.store)
    yield from _overhead_figures(cells, bare_cell_seconds(min(count, 40)))
    if processes.available():
        yield Figure("The same, largest process, peak resident memory", f"{memory.resident:.0f} MB")


def _overhead_figures(cells: list[Cell], bare: float) -> Iterator[Figure]:
    edge = _edge(cells)
    every, first, last = ([cell.overhead for cell in part] for part in (cells, cells[:edge], cells[-edge:]))
    yield (
        below(f"Orchestration per cell, {len(cells) + 1} cells in one play", median(every), 0.5, "s")
        .beside(f"{median(every) / bare:.1f} x a bare Ansible play with as many tasks ({bare:.2f} s a round)")
        .noting(
            f"median {spread(every, unit='s')}; taken off: SQL {median(c.sql for c in cells) * 1000:.0f} ms, "
            f"vSphere tasks and boot {median(c.boot for c in cells) * 1000:.1f} ms"
        )
    )
    growth = median(last) / median(first)
    yield Figure(
        f"The same, last {edge} cells against first {edge}",
        f"{growth:.2f} x",
        peer=f"{median(last):.2f} s against {median(first):.2f} s",
        target="flat: < 1.2 x",
        verdict="met" if growth < 1.2 else "not met",
    )


def _edge(cells: list[Cell]) -> int:
    """How many cells count as first and last."""
    return min(20, len(cells) // 3)


def memory_per_vm(vms: int, blocks: int) -> Iterator[Figure]:
    """The play's processes with one VM and with several; on one host one is measured, the others wait."""
    what, target = f"Memory per VM beyond the first, {vms} VMs in one play", 25.0
    if not processes.available():
        yield not_evaluated(what, f"<= {target:g} MB", "Read from /proc, which only Linux has.")
        return
    one, many = (_peak(count, blocks) for count in (1, vms))
    each = (many.proportional - one.proportional) / (vms - 1)
    yield Figure(
        what,
        f"{each:.1f} MB",
        peer=f"1 VM: {one.proportional:.0f} MB; {vms} VMs: {many.proportional:.0f} MB",
        target=f"<= {target:g} MB",
        verdict="met" if each <= target else "not met",
        note=f"peak PSS of the play's processes ({one.processes} and {many.processes}); the lab has one "
        "host, so one VM is measured and the others wait",
    )


def scenario(vms: int) -> dict[str, Any]:
    """That many VMs on a host on which nothing takes time."""
    machines = [{"name": f"vm{number}", "memory_gb": 16} for number in range(1, vms + 1)]
    return {"name": "bench", "boot": NO_DELAYS, "vms": machines}


def _peak(vms: int, blocks: int) -> Memory:
    names = [f"vm{number}" for number in range(1, vms + 1)]
    with running(scenario(vms)) as lab:
        return _run(lab, study("memory", names, blocks), {}, pss=True)


def _run(
    lab: BenchLab,
    wanted: Mapping[str, Any],
    extra: Mapping[str, str],
    *,
    pss: bool,
    inventory: Path | None = None,
) -> Memory:
    """Run a study to its end, watching its processes. Raises RuntimeError with its last words."""
    process = lab.run_study(wanted, inventory, **extra)
    try:
        with processes.watched(process.pid, 0.3 if pss else 1.0, proportional=pss) as memory:
            code = process.wait(timeout=TIMEOUT_S)
    finally:
        end(process)
    if code:
        raise RuntimeError(f"vnuma run ended with {code}:\n{lab.log.read_text(encoding='utf-8')[-2000:]}")
    return memory


def end(process: subprocess.Popen[str]) -> None:
    """Stop a run in progress, which also ends its play."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def median_overhead(
    lab: BenchLab, extra: Mapping[str, str], name: str, blocks: int, inventory: Path | None = None
) -> float:
    """The median overhead of a cell of a run; `extra` names its store. RuntimeError if the run fails."""
    _run(lab, study(name, ["vm1"], blocks), extra, pss=False, inventory=inventory)
    return median(cell.overhead for cell in cells_of(lab, name, extra["VNUMA_STORE"]))


def cells_of(lab: BenchLab, name: str, url: str) -> list[Cell]:
    """Every cell except the last, which has no successor."""
    store = open_store(url, create=False)
    with store.read() as connection:
        run = runs.get_run(connection, f"{name}.1")
        tries = attempts.attempts_of_run(connection, run.id)
        sql: dict[int, float] = {}
        for stored in samples.iter_samples(connection, run.id):
            sql[stored.attempt_id] = sql.get(stored.attempt_id, 0) + (stored.sample.client_ms or 0) / 1000
    found = []
    boots = _boots(lab.events())
    for this, following in pairwise(tries):
        start, end = this.started_at.timestamp(), following.started_at.timestamp()
        boot = sum(took for at, took in boots if start <= at < end)
        found.append(Cell(end - start, sql.get(this.id, 0), boot))
    return found


def _boots(events: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """The time of each power-on, and the seconds until SQL Server listened."""
    found, began = [], 0.0
    for event in events:
        if event["event"] == "boot":
            began = _seconds(event["time"])
        elif event["event"] == "sql_listening":
            found.append((began, _seconds(event["time"]) - began))
    return found


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
