"""What a study of a Linux machine needs of it, checked one by one, without changing anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from vnuma.domain.vm.machine import MachineFacts
from vnuma.domain.vm.provenance import why_no_hardware
from vnuma.engine.access import machine_shell
from vnuma.engine.access.target import AnyTarget
from vnuma.engine.doctor.diagnosis import Diagnosis
from vnuma.engine.preflight.machine_plan import facts_of
from vnuma.errors import VnumaError
from vnuma.workloads.machine_question import machine_question
from vnuma.workloads.page_cache.obstacles import obstacles_of_machine

FOLDER = "/var/tmp"
"""Asked about; a study may name another."""


def diagnose_machines(targets: Iterable[AnyTarget], inventory: Path) -> Iterator[Diagnosis]:
    """Ask every machine once; what each said, or why it said nothing."""
    names = [target.name for target in targets]
    answers = machine_shell.run_on(names, inventory, machine_question(FOLDER)) if names else {}
    for name in names:
        try:
            yield from _machine(name, facts_of(name, answers[name]))
        except VnumaError as error:
            yield Diagnosis.failed("machine", error)


def _machine(name: str, machine: MachineFacts) -> Iterator[Diagnosis]:
    yield Diagnosis("ok", "machine", f"{name}: {machine.hostname}, {machine.words}")
    if machine.provenance:
        yield Diagnosis("warn", "machine", why_no_hardware(machine.provenance))
    nodes = tuple(
        f"node {node.id}: {len(node.cpus)} CPU{'' if len(node.cpus) == 1 else 's'}, {node.memory_mb:,} MB, "
        f"{node.free_mb + node.cached_mb:,} MB free or cache"
        for node in machine.nodes
    )
    if len(machine.nodes) == 1:
        yield Diagnosis("warn", "NUMA", "one node: arms that need two are left out", nodes)
    else:
        yield Diagnosis("ok", "NUMA", f"{len(machine.nodes)} nodes", nodes)
    balancing, huge = machine.numa_balancing or "none", machine.transparent_hugepages or "none"
    yield Diagnosis("ok", "kernel", f"numa_balancing {balancing}, transparent huge pages {huge}")
    obstacles = list(obstacles_of_machine(machine))
    for found in obstacles:
        yield Diagnosis("FAIL", "page cache", found.what, (f"fix: {found.fix}",))
    if not obstacles:
        yield Diagnosis("ok", "page cache", "root, caches can be dropped, numactl, dd")
