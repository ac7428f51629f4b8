"""Texts about runs on machines that are not reshaped: passes, not boots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vnuma.analysis.result import Analysis
from vnuma.report.model.model import LoadedRun
from vnuma.report.model.words import ORDER_WORDS
from vnuma.store.rows import CellState, Vm
from vnuma.words.plain_text import counted, listed
from vnuma.words.provenance import measured_on

PASSES = (
    "Each replicate is a pass: the page cache was dropped and the file placed anew before it. The machine "
    "was not booted between passes, so the intervals do not include differences between boots."
)


def machine_notes(loaded: LoadedRun, vm: Vm) -> Iterator[str]:
    """What a reader of a machine's figures must know first: concurrent readers, arms left out."""
    if readers := readers_words(loaded, vm):
        yield f"Readers at once: {readers}."
    for label, why in (machine_of(loaded, vm).get("left_out") or {}).items():
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
    found = machine_of(loaded, vm).get(name)
    passes = [one.get(name) for one in loaded.attempt_facts(vm, "workload", "kernel").values()]
    during = ", ".join(str(value) for value in dict.fromkeys(passes) if value != found)
    return f"{found or 'none'}; {during} during passes" if during else str(found or "")


def machine_of(loaded: LoadedRun, vm: Vm) -> dict[str, Any]:
    """The facts about the machine; empty for a VM in vCenter."""
    return loaded.vm_facts(vm, "machine")


def scope_words(loaded: LoadedRun, vm: Vm) -> str:
    """What a machine's answer applies to."""
    facts = machine_of(loaded, vm)
    nodes, processor = facts.get("nodes") or [], facts.get("cpu_model") or "unknown CPU"
    shown = [
        processor,
        counted(len(nodes), "NUMA node"),
        f"Linux {facts.get('kernel', 'of unknown release')}",
    ]
    if vm.esxi_host != vm.name:
        shown.insert(0, vm.esxi_host)
    where = f", on {measured_on(loaded.simulated)}" if loaded.simulated else ""
    return f"Machine {vm.name} ({', '.join(shown)}), measured as it is{where}"


def method_words(loaded: LoadedRun, vm: Vm, analysis: Analysis) -> Iterator[str]:
    """How the cells of a machine were run."""
    study, cells = loaded.study, loaded.due_cells(vm)
    valid = sum(cell.state is CellState.VALID for cell in cells)
    arms = list(dict.fromkeys(cell.arm for cell in cells))
    design = study.design
    twice = f", the reference {study.reference} twice in each block as an A/A check" if design.a_a else ""
    yield (
        f"{counted(len(arms), 'arm')} ({listed(arms)}) in {counted(analysis.blocks, 'block')}: "
        f"complete blocks {ORDER_WORDS[design.order]} (seed {loaded.run.seed}){twice}."
    )
    yield f"{PASSES} Of {len(cells)} cells {valid} are valid."
    yield (
        f"A cell ran {study.workload.summary()}, with "
        f"{counted(design.warmups, 'discarded warm-up')} and "
        f"{counted(design.iterations, 'timed iteration')}; each node's "
        "FilePages proved before the first of them where the file's pages lay."
    )
    if readers := readers_words(loaded, vm):
        rests = "; the unsaturated one rests after each sixteenth of the file"
        yield f"Readers at once: {readers}{rests if 'unsaturated' in study.workload.forms else ''}."
    for label, why in (machine_of(loaded, vm).get("left_out") or {}).items():
        yield f"Arm {label} was left out: {why}"


def machine_pairs(loaded: LoadedRun, vm: Vm) -> list[tuple[str, str]]:
    """Everything that decides whether another run on a machine may be compared with this one."""
    facts = machine_of(loaded, vm)
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
        "Readers at once": readers_words(loaded, vm),
        "memory_spread_page": facts.get("spread_page"),
        "Memory limit of the cgroup": facts.get("memory_limit_mb"),
        "File system": facts.get("file_system"),
    }
    return [(name, "not known" if value in (None, "") else str(value)) for name, value in known.items()]
