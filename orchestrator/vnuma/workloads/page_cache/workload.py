"""`page_cache`: a file in the page cache, read from a chosen NUMA node (Closson 2009).

A pass drops the caches, reads the file in with its pages placed as the arm says, proves the placement from
each node's FilePages, and reads the file as often as the study says. It does not need SQL Server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from vnuma.domain.vm.linux import LinuxFacts, linux_facts
from vnuma.errors import MeasurementFailed, PlacementNotProven
from vnuma.logs import guest_tools
from vnuma.logs.guest_tools import Copied
from vnuma.workloads.interface import Bench, Document, Reached, Reading, SystemUnderTest, Workload
from vnuma.workloads.page_cache import scripts
from vnuma.workloads.page_cache.obstacles import obstacles_of
from vnuma.workloads.page_cache.settings import PageCache, growth, not_proven
from vnuma.workloads.shell import linux_question, require

SCOPE = "workload"
LOST_SHARE = 0.5
"""Share of the file: a larger decrease of FilePages after a read means that the file was evicted."""

REST_S = 0.05
"""Pause between slices of the unsaturated form: with 16 of them 0.8 s, more than a read takes."""


def _prepare(system: SystemUnderTest) -> Document:
    """Create the file of each size, unless it exists."""
    settings: PageCache = system.settings
    for size in settings.sizes:
        system.say(f"making a file of {settings.size_label(size)}")
        require(system.shell, scripts.make_file(settings.folder, size), f"{system.vm}: making the file")
    return {"files": [scripts.file_name(settings.folder, size) for size in settings.sizes]}


def _remove(left: Reached, settings: PageCache) -> None:
    """Remove the files. Raises MeasurementFailed when they stay."""
    require(left.shell, scripts.remove(settings.folder, settings.sizes), "removing the files")


@contextmanager
def _bench(system: SystemUnderTest) -> Iterator[Bench]:
    """A pass: kernel settings are held, and the file is placed before the first read of each size."""
    settings: PageCache = system.settings
    with system.kernel_settings():
        asked = linux_question(settings.folder)
        machine = linux_facts(require(system.shell, asked, f"{system.vm}: looking at its nodes"))
        node = machine.node(settings.cpu_node)
        readers = settings.readers(len(node.cpus) if node else 1)
        system.record(SCOPE, {"kernel": _kernel(machine), "readers": readers})
        yield _Pass(system, settings, machine, readers).run


def _kernel(machine: LinuxFacts) -> Document:
    """The kernel's settings and limits during a pass."""
    return {
        "numa_balancing": machine.numa_balancing,
        "transparent_hugepages": machine.transparent_hugepages,
        "memory_spread_page": machine.spread_page,
        "memory_limit_mb": machine.memory_limit_mb,
    }


@dataclass
class _Pass:
    """One pass over the sizes; `size` is that of the file in the page cache now."""

    system: SystemUnderTest
    settings: PageCache
    machine: LinuxFacts
    readers: Mapping[str, int]
    """How many read at once, by form."""
    size: int | None = None

    def run(self, size: int, form: str) -> Reading:
        """Read the file once in that form; place it first if it was not the last one."""
        if size != self.size:
            self._place(size)
            self.size = size
        path, node = scripts.file_name(self.settings.folder, size), self.settings.cpu_node
        if form == "unsaturated":
            script = scripts.read_with_rests(path, node, size, REST_S)
        else:
            script = scripts.read_back(path, node, self.readers[form])
        shown = guest_tools.sections(
            require(self.system.shell, script, f"{self.system.vm}: reading the file")
        )
        moved = growth(_file_pages(shown["before"]), _file_pages(shown["after"]))
        if sum(moved.values()) < -LOST_SHARE * size * 1000:
            raise PlacementNotProven(
                f"{self.system.vm}: pages left the page cache while the file was read: {moved} KB by node.",
                fix="Check memory pressure, and the cgroup's memory limit.",
            )
        copied = _copied(shown)
        if form == "unsaturated":
            # The whole window, pauses included: the throughput of a consumer that does not always read.
            elapsed = float(shown["down"].split()[0]) - float(shown["up"].split()[0])
            read, busy = size * 1e6, sum(one.seconds for one in copied)
        else:
            elapsed = busy = max(one.seconds for one in copied)
            read = sum(one.bytes for one in copied)
        return Reading(
            elapsed_ms=elapsed * 1000,
            value=read / elapsed / 1e9,
            figures={"seconds per read": busy, "pages moved": sum(map(abs, moved.values())) / 1000},
        )

    def _place(self, size: int) -> None:
        """Load the file. Raises PlacementNotProven unless FilePages prove its placement."""
        settings, system = self.settings, self.system
        system.say(f"placing a file of {settings.size_label(size)}")
        nodes = [node.id for node in self.machine.nodes if node.memory_mb]
        path = scripts.file_name(settings.folder, size)
        script = scripts.load(path, settings.cpu_node, settings.memory_node, nodes)
        shown = guest_tools.sections(require(system.shell, script, f"{system.vm}: placing the file"))
        grown = growth(_file_pages(shown["before"]), _file_pages(shown["after"]))
        with_memory = {node: kb for node, kb in grown.items() if node in nodes}
        wanted, file_kb = settings.memory_node, size * 1_000_000 // 1024
        found = {"wanted": wanted, "file_kb": file_kb, "grown_kb": with_memory}
        system.record(SCOPE, {f"placed {size}": found})
        if wrong := not_proven(file_kb, with_memory, wanted, settings.cpu_node):
            raise PlacementNotProven(
                f"{system.vm}, arm {system.arm}: {wrong}.",
                fix="Check the nodes' free memory (numactl -H), cgroup limits, memory_spread_page, and "
                "programs that read the same file.",
            )


def _file_pages(text: str) -> dict[int, int]:
    return {node: shown.get("FilePages", 0) for node, shown in guest_tools.meminfo(text).items()}


def _copied(shown: Mapping[str, str]) -> tuple[Copied, ...]:
    """The results of every dd in a script. Raises MeasurementFailed without any."""
    try:
        found = guest_tools.copied(shown["read"])
    except ValueError as error:
        raise MeasurementFailed(
            f"{error}: the file is too small to be timed.", fix="Use a larger size."
        ) from None
    if not found:
        raise MeasurementFailed(
            f"dd reported no time: {shown['read'].strip()[-200:]!r}.", fix="Run dd on the machine by hand."
        )
    return found


WORKLOAD = Workload(
    settings=PageCache, guest_obstacles=obstacles_of, prepare=_prepare, remove=_remove, bench=_bench
)
