"""A Linux machine that any workload may run on."""

from __future__ import annotations

from vnuma.domain.vm.linux import LinuxFacts, Node

MACHINE = LinuxFacts(
    hostname="db1",
    kernel="6.1.0",
    identity="abc",
    cpu_model="Xeon",
    nodes=(Node(0, (0, 1), 8000, 6000), Node(1, (2, 3), 8000, 6000)),
    distances={0: (10, 20), 1: (20, 10)},
    is_root=True,
    numactl=True,
    dd_times=True,
    emulated=None,
    virtualization="",
    numa_balancing="1",
    transparent_hugepages="madvise",
    spread_page="0",
    memory_limit_mb=None,
    allowed_nodes=(0, 1),
    file_system="ext2/ext3",
    free_disk_mb=50_000,
    free_shm_mb=8_000,
)
