"""`page_cache`: a file in the page cache, read from a chosen NUMA node (Closson 2009).

A pass drops the caches, reads the file in with its pages placed as the arm says, proves the placement from
each node's FilePages, and reads the file as often as the study says. It does not need SQL Server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from vnuma.domain.vm.linux import LinuxFacts, Node, linux_facts
from vnuma.errors import MeasurementFailed, PlacementNotProven
from vnuma.logs import guest_tools
from vnuma.logs.guest_tools import Copied
from vnuma.workloads.interface import Bench, Document, Obstacle, Reached, Reading, SystemUnderTest, Workload
from vnuma.workloads.page_cache import scripts
from vnuma.workloads.page_cache.scripts import LEFT_ON_DEPLETED_MB
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


_IN_MEMORY = frozenset({"tmpfs", "ramfs", "rootfs", "shmem"})
"""File systems that are memory themselves: dropping caches does not move their files."""

SMALLEST_DEPLETED_MB = 2 * LEFT_ON_DEPLETED_MB
"""A smaller file could fit into the free rest of a depleted node."""

SPARE_MB = 64
"""A node's memory besides the file, for the kernel and the reader, in MB."""


def obstacles_of(settings: PageCache, machine: LinuxFacts) -> Iterator[Obstacle]:
    """Obstacles of the machine as a whole, then of the settings' folder and nodes."""
    yield from obstacles_of_guest(machine)
    yield from _room(settings, machine)
    yield from _nodes(settings, machine)


def obstacles_of_guest(machine: LinuxFacts) -> Iterator[Obstacle]:
    """What prevents any study of the page cache there."""
    name = machine.hostname
    if not machine.is_root:
        yield Obstacle(
            f"{name}: not root; dropping the page cache through /proc/sys/vm/drop_caches needs root.",
            "Let Ansible become root there (ansible_become_password, or passwordless sudo), or run as root.",
        )
    elif not machine.may_drop_caches:
        yield Obstacle(
            f"{name}: root may not drop the page cache: /proc/sys/vm/drop_caches cannot be written.",
            "Run on the machine itself, not in a container, or in a privileged one.",
        )
    if not machine.numactl:
        yield Obstacle(
            f"{name} has no numactl.", "Install it there: apt install numactl, or dnf install numactl."
        )
    if not machine.dd_times:
        yield Obstacle(
            f"{name}: its dd does not report its elapsed time, as in some builds of busybox.",
            "Install GNU coreutils there.",
        )
    if machine.spread_page == "1":
        yield Obstacle(
            f"{name}: the cpuset's memory_spread_page is on, so the kernel spreads the page cache itself.",
            "Write 0 to cpuset.memory_spread_page of the cpuset that Ansible's commands run in.",
        )


def _room(settings: PageCache, machine: LinuxFacts) -> Iterator[Obstacle]:
    largest, together = max(settings.sizes), sum(settings.sizes)
    if machine.file_system in _IN_MEMORY:
        yield Obstacle(
            f"{machine.hostname}: {settings.folder} is a {machine.file_system}: its files stay in memory.",
            "Set workload.folder to a folder on a disk.",
        )
    elif machine.is_root and not machine.may_write:
        yield Obstacle(
            f"{machine.hostname}: {settings.folder} cannot be written: it is read-only, or does not "
            "belong to root.",
            "Set workload.folder to a folder on a disk that root may write to.",
        )
    elif machine.free_disk_mb is not None and machine.free_disk_mb < together:
        yield Obstacle(
            f"{machine.hostname}: {settings.folder} has {machine.free_disk_mb:,} MB free; "
            f"the files take {together:,}.",
            "Use smaller sizes, or another workload.folder.",
        )
    if machine.memory_limit_mb is not None and machine.memory_limit_mb < largest:
        yield Obstacle(
            f"{machine.hostname}: the cgroup's memory limit is {machine.memory_limit_mb:,} MB; "
            f"a file of {largest:,} MB does not stay in the page cache.",
            "Use smaller sizes, or raise the limit.",
        )


def _nodes(settings: PageCache, machine: LinuxFacts) -> Iterator[Obstacle]:
    reader = machine.node(settings.cpu_node)
    known = ", ".join(str(node.id) for node in machine.nodes)
    if reader is None or not reader.cpus:
        what = "no NUMA node" if reader is None else "no CPU on node"
        yield Obstacle(
            f"{machine.hostname} has {what} {settings.cpu_node} to read from (nodes: {known}).",
            "Name another cpu_node.",
        )
    memory = [node for node in machine.nodes if node.memory_mb]
    if isinstance(settings.memory_node, str):
        if len(memory) < 2:
            yield Obstacle(
                f"{machine.hostname} has one NUMA node only: memory_node {settings.memory_node} needs two.",
                "Remove the arm.",
            )
        elif settings.memory_node == "depleted" and reader is not None:
            yield from _depletion(settings, machine, reader)
        return
    holder = next((node for node in memory if node.id == settings.memory_node), None)
    if holder is None:
        yield Obstacle(
            f"{machine.hostname} has no memory on NUMA node {settings.memory_node} (nodes: {known}).",
            "Name another memory_node.",
        )
    elif holder.id not in machine.allowed_nodes:
        yield Obstacle(
            f"{machine.hostname}: the commands' cpuset may not use memory of node {holder.id}.",
            "Widen cpuset.mems of the cpuset that Ansible's commands run in.",
        )
    elif holder.memory_mb < _needed_mb(settings):
        yield Obstacle(
            f"{machine.hostname}: node {holder.id} has {holder.memory_mb:,} MB of memory, "
            f"too little for a file of {max(settings.sizes):,} MB.",
            "Use smaller sizes.",
        )
    elif holder.free_mb + holder.cached_mb < _needed_mb(settings):
        yield Obstacle(
            f"{machine.hostname}: of node {holder.id}'s memory {holder.free_mb + holder.cached_mb:,} MB are "
            f"free or cache, too little for a file of {max(settings.sizes):,} MB: programs use the rest.",
            "Stop what runs there, or use smaller sizes.",
        )


def _needed_mb(settings: PageCache) -> int:
    return max(settings.sizes) * 1_000_000 // 2**20 + SPARE_MB


def _depletion(settings: PageCache, machine: LinuxFacts, reader: Node) -> Iterator[Obstacle]:
    """Whether the reader's node can be depleted, and the file is large enough to prove it."""
    smallest, taken = min(settings.sizes), reader.free_mb + reader.cached_mb - LEFT_ON_DEPLETED_MB
    if smallest < SMALLEST_DEPLETED_MB:
        yield Obstacle(
            f"A file of {smallest:,} MB may lie on the depleted node, whose last {LEFT_ON_DEPLETED_MB} MB "
            "stay free.",
            f"Use sizes of at least {SMALLEST_DEPLETED_MB} MB with memory_node depleted.",
        )
    elif machine.free_shm_mb is None or machine.free_shm_mb < taken:
        room = "nothing" if machine.free_shm_mb is None else f"{machine.free_shm_mb:,} MB"
        yield Obstacle(
            f"{machine.hostname}: /dev/shm can take {room}; filling node {reader.id} takes {taken:,} MB.",
            "Enlarge it: mount -o remount,size=90% /dev/shm. Or remove the arm.",
        )


WORKLOAD = Workload(
    settings=PageCache, guest_obstacles=obstacles_of, prepare=_prepare, remove=_remove, bench=_bench
)
