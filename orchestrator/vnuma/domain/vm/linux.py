"""Facts of a Linux guest, read through its shell before anything is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from uuid import UUID

from vnuma.domain.vm.facts import GuestTopology
from vnuma.logs import guest_tools
from vnuma.words.plain_text import counted
from vnuma.words.provenance import emulated_by, scenario_of

_UNDER_THE_CPU = "TCG"


@dataclass(frozen=True)
class Node:
    """One NUMA node: its CPUs, and its memory in MB at the time of reading.

    `cached_mb` is what dropping the page cache frees: FilePages without those of a tmpfs.
    """

    id: int
    cpus: tuple[int, ...]
    memory_mb: int
    free_mb: int
    cached_mb: int = 0


@dataclass(frozen=True)
class LinuxFacts:
    """A guest, or a machine without a hypervisor, and what decides whether and what can be measured on it."""

    hostname: str
    kernel: str
    identity: str
    """Constant: the machine id, else the firmware's UUID, else the host name."""
    cpu_model: str
    nodes: tuple[Node, ...]
    distances: Mapping[int, tuple[int, ...]]
    is_root: bool
    numactl: bool
    dd_times: bool
    """Whether its dd reports its duration, which some builds of busybox do not."""
    emulated: str | None
    """The software that emulates it; None for hardware, and for a hardware-assisted VM."""
    virtualization: str
    numa_balancing: str | None
    """kernel.numa_balancing: `0`, `1` or more; None if the kernel lacks it."""
    transparent_hugepages: str | None
    spread_page: str | None
    """The cpuset's memory_spread_page: `1` spreads the page cache despite numactl."""
    memory_limit_mb: int | None
    """Limit of the cgroup that runs the commands; None without one."""
    allowed_nodes: tuple[int, ...]
    """Nodes whose memory the commands may use (Mems_allowed_list)."""
    file_system: str
    free_disk_mb: int | None
    may_write: bool = True
    """Whether the commands may write in the folder, which may be on a read-only file system."""
    may_drop_caches: bool = True
    """Whether they may write /proc/sys/vm/drop_caches, which root of a container often may not."""
    free_shm_mb: int | None = None
    """Free space in /dev/shm; None without it."""
    uuid: str = ""
    """The firmware's UUID; empty if it shows none."""
    boot: str = ""
    """The kernel's own number of this boot; empty if it shows none."""
    missing: tuple[str, ...] = ()
    """Files and programs that were asked for and are not there."""
    simulated: str | None = None
    """The scenario of the lab that simulates it; None for a real machine."""

    def node(self, number: int) -> Node | None:
        """The node of that number."""
        return next((node for node in self.nodes if node.id == number), None)

    @property
    def topology(self) -> GuestTopology:
        """Its CPUs and nodes, as what a boot is judged by."""
        vcpus, nodes = sum(len(node.cpus) for node in self.nodes), len(self.nodes)
        return GuestTopology(vcpus, None, None, nodes, nodes, None)

    def with_nodes(self, cpus: Sequence[int], memory_mb: int) -> LinuxFacts:
        """The same guest with nodes of that many CPUs each, which share the memory evenly."""
        firsts, each = list(accumulate(cpus, initial=0)), memory_mb // len(cpus)
        nodes = tuple(
            Node(id_, tuple(range(first, first + count)), each, each)
            for id_, (first, count) in enumerate(zip(firsts, cpus, strict=False))
        )
        return replace(self, nodes=nodes, allowed_nodes=tuple(range(len(nodes))))

    @property
    def provenance(self) -> str | None:
        """What its figures are measured on, as stored (`words.provenance`); None for hardware."""
        return self.simulated or (emulated_by(self.emulated) if self.emulated else None)

    @property
    def words(self) -> str:
        """`2 NUMA nodes, Linux 6.1.0`, for plans and reports."""
        count = len(self.nodes)
        return f"{counted(count, 'NUMA node')}, Linux {self.kernel}"


def same_uuid(shown: str, bios: str) -> bool:
    """Whether a guest's product_uuid is this UUID of a VM's firmware.

    SMBIOS has the first three fields in either byte order (SMBIOS 2.6, 7.2.1, and the versions before it).
    """
    try:
        one, other = UUID(shown), UUID(bios)
    except ValueError:
        return False
    return other.bytes in (one.bytes, one.bytes_le)


def linux_facts(text: str) -> LinuxFacts:
    """Parse the output of `workloads.shell.linux_question`. Raises ValueError for anything else."""
    part = guest_tools.sections(text)
    memory = guest_tools.meminfo(part.get("meminfo", ""))
    cpus = _cpus_by_node(part.get("cpulists", ""))
    nodes = tuple(
        Node(
            id_,
            cpus.get(id_, ()),
            shown.get("MemTotal", 0) // 1024,
            shown.get("MemFree", 0) // 1024,
            (shown.get("FilePages", 0) - shown.get("Shmem", 0)) // 1024,
        )
        for id_, shown in sorted(memory.items())
    )
    model, virtualization = _line(part, "cpu"), _line(part, "virt")
    return LinuxFacts(
        hostname=_line(part, "hostname") or "unknown",
        kernel=_line(part, "kernel"),
        identity=_line(part, "machine-id") or _line(part, "uuid") or _line(part, "hostname"),
        cpu_model=model,
        nodes=nodes,
        distances=_distances(part.get("distances", "")),
        is_root=_line(part, "uid") == "0",
        numactl=bool(_line(part, "numactl")),
        dd_times=bool(guest_tools.copied(part.get("dd", ""))),
        emulated=_emulator(model, virtualization, part),
        virtualization=virtualization,
        numa_balancing=_line(part, "numa_balancing") or None,
        transparent_hugepages=_chosen(_line(part, "thp")),
        spread_page=_line(part, "spread_page") or None,
        memory_limit_mb=_limit_mb(_line(part, "memory_limit")),
        allowed_nodes=guest_tools.number_list(_line(part, "mems_allowed")),
        file_system=_line(part, "file_system"),
        free_disk_mb=_mb(_line(part, "disk_kb")),
        may_write=_line(part, "folder") == "writable",
        may_drop_caches=_line(part, "drop_caches") == "writable",
        free_shm_mb=_mb(_line(part, "shm_kb")),
        uuid=_line(part, "uuid"),
        boot=_line(part, "boot"),
        missing=tuple(part.get("missing", "").split("\n")) if part.get("missing", "").strip() else (),
        simulated=scenario_of(_line(part, "vendor")),
    )


def _line(part: Mapping[str, str], name: str) -> str:
    """The first line of a section, stripped; empty for one that is missing."""
    return part.get(name, "").strip().partition("\n")[0].strip()


def _mb(kilobytes: str) -> int | None:
    return int(kilobytes) // 1024 if kilobytes.isdecimal() else None


def _cpus_by_node(text: str) -> dict[int, tuple[int, ...]]:
    rows = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
    return {int(row[0]): guest_tools.number_list(row[1] if len(row) > 1 else "") for row in rows}


def _distances(text: str) -> dict[int, tuple[int, ...]]:
    rows = (line.split() for line in text.splitlines() if line.strip())
    return {int(row[0]): tuple(int(value) for value in row[1:]) for row in rows}


def _chosen(text: str) -> str | None:
    """The choice in brackets, as in sysfs: `always [madvise] never`."""
    return text.partition("[")[2].partition("]")[0] or None


def _limit_mb(text: str) -> int | None:
    """A cgroup's limit in bytes; `max`, and version 1's huge number, mean none."""
    return int(text) // 2**20 if text.isdecimal() and int(text) < 2**60 else None


def _emulator(model: str, virtualization: str, part: Mapping[str, str]) -> str | None:
    """QEMU without KVM: its CPU's name contains TCG, or its firmware is QEMU's and there is no kvm-clock.

    systemd-detect-virt(1) distinguishes `qemu` (software emulation) from `kvm` in the same way.
    """
    by_firmware = _line(part, "vendor").upper() == "QEMU" and "kvm" not in part.get("clocks", "")
    if _UNDER_THE_CPU in model or virtualization == "qemu" or by_firmware:
        return "QEMU without KVM"
    return None
