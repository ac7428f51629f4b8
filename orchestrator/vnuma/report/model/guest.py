"""Texts about guests that a workload reached by a shell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Vm
from vnuma.words.plain_text import counted

PASSES = (
    "Each replicate is a pass. The machine was not booted between passes, so the intervals do not include "
    "differences between boots."
)


def guest_notes(loaded: LoadedRun, vm: Vm) -> Iterator[str]:
    """What a reader of its figures must know first: concurrent readers, arms left out."""
    if readers := readers_words(loaded, vm):
        yield f"Readers at once: {readers}."
    for label, why in left_out(loaded, vm).items():
        yield f"Arm {label} was left out: {why}"


def readers_words(loaded: LoadedRun, vm: Vm) -> str:
    """How many read at once in each form: `single 1, saturated 8`; empty if not recorded."""
    known = list(loaded.attempt_facts(vm, "workload", "readers").values())
    counts = {form: [one[form] for one in known if form in one] for form in loaded.study.workload.forms}
    return ", ".join(f"{form} {_range(numbers)}" for form, numbers in counts.items() if numbers)


def _range(numbers: list[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high} by arm"


def _held(loaded: LoadedRun, vm: Vm, name: str) -> str:
    """A kernel setting's original value, and the value in the passes if different."""
    found = guest_of(loaded, vm).get(name)
    passes = [one.get(name) for one in loaded.attempt_facts(vm, "workload", "kernel").values()]
    during = ", ".join(str(value) for value in dict.fromkeys(passes) if value != found)
    return f"{found or 'none'}; {during} during passes" if during else str(found or "")


def guest_of(loaded: LoadedRun, vm: Vm) -> dict[str, Any]:
    """The facts about a guest that was asked through its shell; empty for others."""
    return loaded.vm_facts(vm, "machine")


def left_out(loaded: LoadedRun, vm: Vm) -> dict[str, str]:
    """The arms that a guest with one node cannot have, each with its reason."""
    return guest_of(loaded, vm).get("left_out") or {}


def guest_words(loaded: LoadedRun, vm: Vm) -> str:
    """`Xeon X5570, 2 NUMA nodes, Linux 6.1.0`, of a machine that nothing shapes; else its kernel."""
    facts = guest_of(loaded, vm)
    kernel = f"Linux {facts.get('kernel', 'of unknown release')}"
    if loaded.study.shapes:
        return kernel
    nodes, processor = facts.get("nodes") or [], facts.get("cpu_model") or "unknown CPU"
    return f"{processor}, {counted(len(nodes), 'NUMA node')}, {kernel}"


def guest_pairs(loaded: LoadedRun, vm: Vm) -> list[tuple[str, str]]:
    """Everything in it that decides whether another run may be compared with this one."""
    facts = guest_of(loaded, vm)
    known = {
        "Name": facts.get("hostname"),
        "Processor": facts.get("cpu_model"),
        "Kernel": facts.get("kernel"),
        "Virtualization": facts.get("virtualization") or "none seen",
        "NUMA nodes": ", ".join(
            f"node {node['id']}: {counted(len(node['cpus']), 'CPU')}, {node['memory_mb']:,} MB"
            for node in facts.get("nodes") or []
        ),
        "Distances": "; ".join(
            f"node {node}: {' '.join(map(str, row))}" for node, row in (facts.get("distances") or {}).items()
        ),
        "kernel.numa_balancing": _held(loaded, vm, "numa_balancing"),
        "Transparent huge pages": _held(loaded, vm, "transparent_hugepages"),
        **({"Readers at once": readers} if (readers := readers_words(loaded, vm)) else {}),
        "memory_spread_page": facts.get("spread_page"),
        "Memory limit of the cgroup": facts.get("memory_limit_mb"),
        "File system": facts.get("file_system"),
    }
    return [(name, "not known" if value in (None, "") else str(value)) for name, value in known.items()]
