"""Studies of an emulated guest, what it shows of itself, and what a run of it kept in the store."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.cli import vnuma
from vnuma.report.model.model import load_run
from vnuma.store.open import open_store
from vnuma.store.rows import Attempt, Outcome, Sample
from vnuma.store.samples import iter_samples

LOOK = (
    "cat /proc/sys/kernel/numa_balancing /sys/kernel/mm/transparent_hugepage/enabled; ls -d /data/vnuma-* "
    "/dev/shm/vnuma-* 2>/dev/null; true"
)
"""Its kernel settings, and what a study may have left there."""

REMOTE = "{topology: keep, name: remote, workload: {cpu_node: 0, memory_node: 1}}"
LOCAL = "{topology: keep, name: local, workload: {cpu_node: 0, memory_node: 0}}"

_STUDY = """
name: emulated
vm: {host}
reference: {reference}
arms: {arms}
design: {{blocks: 1, a_a: false, sentinel: false, warmups: 0, iterations: {iterations}}}
workload:
  name: page_cache
  sizes: [{size}]
  forms: {forms}
  folder: /data
  numa_balancing: "off"
  transparent_hugepages: madvise
"""


def study_text(
    *,
    host: str = "emulated",
    arms: str = f"[{REMOTE}]",
    reference: str = "remote",
    size: int = 16,
    forms: str = "[saturated, unsaturated]",
    iterations: int = 1,
) -> str:
    """A study that holds both kernel settings; `size` in MB."""
    return _STUDY.format(
        host=host, arms=arms, reference=reference, size=size, forms=forms, iterations=iterations
    )


@dataclass(frozen=True)
class Placement:
    """Where a cell wanted the file's pages, and the growth of each node's FilePages in KB."""

    wanted: object
    grown: dict[int, int]

    @property
    def shares(self) -> dict[int, float]:
        """Each node's share of the growth."""
        total = sum(self.grown.values())
        return {node: kb / total for node, kb in self.grown.items()}


@dataclass(frozen=True)
class Kept:
    """Of the latest run: placements by arm, kernel and readers of each pass, and its samples."""

    placed: dict[str, Placement]
    kernel: list[dict[str, object]]
    readers: list[dict[str, int]]
    samples: list[Sample]


def kept(home: Path, size: int = 16) -> Kept:
    """Read it as reports do."""
    store = open_store(f"sqlite:///{home}/vnuma.db")
    loaded = load_run(store, "latest")
    with store.read() as connection:
        measured = [one.sample for one in iter_samples(connection, loaded.run.id)]
    (vm,) = loaded.vms
    arms = {attempt.id: attempt.arm for attempt in loaded.attempts_of(vm, Outcome.VALID)}
    placed = loaded.attempt_facts(vm, "workload", f"placed {size}")
    return Kept(
        {arms[attempt]: _placement(one) for attempt, one in placed.items() if attempt in arms},
        list(loaded.attempt_facts(vm, "workload", "kernel").values()),
        list(loaded.attempt_facts(vm, "workload", "readers").values()),
        measured,
    )


def _placement(stored: dict[str, Any]) -> Placement:
    return Placement(stored["wanted"], {int(node): kb for node, kb in stored["grown_kb"].items()})


VM: dict[str, Any] = {"name": "linux16", "vcpus": 16, "memory_gb": 64}
SHAPED = {"name": "shaped", "vms": [VM], "machines": [{"name": "linux16", "vm": "linux16"}]}


def nodes_of(attempt: Attempt) -> int:
    """How many nodes the guest showed in that attempt's boot."""
    effective: Any = attempt.effective
    return int(effective["guest"]["numa_nodes"])


def figures() -> list[dict[str, Any]]:
    """The newest run's line for each arm."""
    document = json.loads(vnuma("results", "latest", "--format", "json").out)
    arms: list[dict[str, Any]] = document["analyses"][0]["sizes"][0]["arms"]
    return arms
