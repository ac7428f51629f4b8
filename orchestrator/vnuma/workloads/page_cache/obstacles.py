"""What prevents the page cache workload from running on a machine, in one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from vnuma.domain.vm.linux import LinuxFacts, Node
from vnuma.workloads.interface import Obstacle
from vnuma.workloads.page_cache.scripts import LEFT_ON_DEPLETED_MB
from vnuma.workloads.page_cache.settings import PageCache

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
