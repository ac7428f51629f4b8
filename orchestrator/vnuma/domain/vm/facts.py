"""Facts of a VM, its host and its guest: plain values, with units in the names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from vnuma.domain.vm.setting import Power, Settings

HostKey = tuple[str, str]
"""Which host a VM loads: the host's name, unique in one vCenter only, after the vCenter's instance UUID.

For a host without vCenter, its hardware's.
"""


def host_key(vm_key: str, host_name: str) -> HostKey:
    """The host of this name that the VM of this key is on; a key begins with its vCenter."""
    return vm_key.partition("/")[0], host_name


@dataclass(frozen=True)
class Release:
    """An ESXi or vCenter release, such as 8.0.3 build 24022510."""

    version: str
    build: str = ""

    @cached_property
    def key(self) -> tuple[int, int]:
        """Major and minor number, for comparison: (6, 5) for 6.5.0."""
        parts = [*self.version.split("."), "0", "0"][:2]
        return int(parts[0]), int(parts[1])

    def __str__(self) -> str:
        return f"{self.version} build {self.build}" if self.build else self.version


@dataclass(frozen=True)
class NumaNode:
    """One NUMA node of a host: its logical CPUs, ascending, and its memory."""

    id: int
    cpus: tuple[int, ...]
    memory_mb: int


def _without_overhead(memory_mb: int) -> int:
    """What is left for a VM's own memory. The overhead is about 1/128 of that.

    Source: "Overhead Memory on Virtual Machines", vSphere Resource Management (140 MB for 16 GB).
    """
    return memory_mb * 128 // 129


@dataclass(frozen=True)
class HostFacts:
    """An ESXi host: what decides placement and comparability."""

    moid: str
    name: str
    release: Release
    vendor: str
    model: str
    cpu_model: str
    bios: str
    packages: int
    cores: int
    threads: int
    memory_mb: int
    numa_nodes: tuple[NumaNode, ...]
    mhz: int = 0
    """Nominal clock of a core; 0: unknown."""
    in_drs_cluster: bool = False
    drs_default: str | None = None
    numa_reported: bool | None = None
    """Whether `numa_nodes` came from the host; False: one node with everything was assumed."""
    node_memory_estimated: bool = False
    """Whether the memory of a NUMA node is the host's divided by its nodes, which no source states."""
    power_policy: str | None = None
    """The CPU power policy's short name in vSphere: static (High performance), dynamic, low."""
    threads_used: bool | None = None
    """Whether ESXi schedules on every enabled thread; False: on one per core (SCAv1)."""
    advanced: Mapping[str, str] | None = None
    """The advanced options Numa.* of the host, by name."""
    max_cores_per_socket: int | None = None
    """Most cores per virtual socket that this host supports (its VM capability)."""
    powered_on_mb: Mapping[str, int] | None = None
    """Memory of every running VM, by managed object id; None: not counted."""
    evc_mode: str | None = None
    """The EVC mode in effect, such as intel-broadwell; empty: none; None: not read."""
    described: bool = False
    """Whether it was described by its NUMA nodes alone: sockets and options are then assumed."""

    @property
    def is_virtual(self) -> bool:
        """Whether this ESXi runs in a VM of VMware (nested)."""
        return self.vendor.startswith("VMware")

    @cached_property
    def threads_per_core(self) -> int:
        """Logical CPUs per physical core: 2 with hyper-threading on.

        If ESXi does not use hyper-threads, its nodes list one CPU per core, whatever `threads` says.
        """
        listed = sum(len(node.cpus) for node in self.numa_nodes)
        return max(1, min(self.threads, listed) // self.cores)

    @cached_property
    def cores_per_node(self) -> int:
        """Physical cores of the smallest NUMA node, which a VM must fit."""
        return min(len(node.cpus) for node in self.numa_nodes) // self.threads_per_core

    @cached_property
    def core_of_cpu(self) -> dict[int, int]:
        """A number for each physical core, by logical CPU, from the nodes' own lists.

        ESXi numbers the threads of a core consecutively: with hyper-threading 2k and 2k+1 share a core
        (VMware Cloud on AWS performance guide, "Hyper-Threading and CPU affinity").
        """
        return {
            cpu: node.id * 10_000 + index // self.threads_per_core
            for node in self.numa_nodes
            for index, cpu in enumerate(sorted(node.cpus))
        }

    @cached_property
    def node_memory_mb(self) -> int:
        """Memory of the smallest NUMA node."""
        return min(node.memory_mb for node in self.numa_nodes)

    @cached_property
    def local_memory_mb(self) -> int:
        """The most memory of a VM that the smallest NUMA node holds beside the VM's overhead."""
        return _without_overhead(self.node_memory_mb)

    @property
    def largest_vm_mb(self) -> int:
        """The most memory of a VM that the host holds beside the VM's overhead."""
        return _without_overhead(self.memory_mb)

    @cached_property
    def running_mb(self) -> int | None:
        """Memory of all running VMs here; None: not counted."""
        return None if self.powered_on_mb is None else sum(self.powered_on_mb.values())


@dataclass(frozen=True)
class ClusterFacts:
    """A cluster and its hosts. A standalone host is a cluster of one, without DRS."""

    moid: str
    name: str
    drs_enabled: bool | None
    hosts: tuple[HostFacts, ...]
    """The readable hosts; see `unread`."""
    unread: tuple[str, ...] = ()
    """Names of unreadable hosts: disconnected, or not visible to the account."""

    @cached_property
    def shapes(self) -> Mapping[tuple[object, ...], HostFacts]:
        """One host for each distinct shape in the cluster, by what decides the placement of a VM's nodes."""
        return {
            (
                host.release.key,
                len(host.numa_nodes),
                host.cores_per_node,
                host.threads_per_core,
                host.node_memory_mb >> 10,
            ): host
            for host in self.hosts
        }


@dataclass(frozen=True)
class VmFacts:
    """One VM as vSphere shows it now.

    `settings` has every typed setting and every governed or evidence extraConfig key; `guest_full_name` may
    be empty before Tools have ever run.
    """

    moid: str
    name: str
    path: str
    vcenter_uuid: str
    instance_uuid: str
    hardware_version: int
    guest_id: str
    guest_full_name: str
    power: Power
    host_moid: str
    host_name: str
    tools_running: bool
    """Read only for a study's VM: no design rule needs it."""
    change_version: str
    settings: Settings
    bios_uuid: str = ""
    """The firmware's UUID, which the guest shows too; read only for a study's VM."""
    lease: str | None = None
    question: str | None = None
    log_directory: str | None = None
    disabled_methods: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    """Properties that were answered in an unexpected form; what they say is not evaluated."""
    has_snapshot: bool = False
    drs_override: str | None = None
    is_template: bool = False
    managed_by: str = ""
    """The key of the extension that owns the VM; empty: nobody."""

    @property
    def is_system_vm(self) -> bool:
        """Whether vSphere runs it for itself (vCLS): its shape is nobody's to judge."""
        return self.managed_by == "com.vmware.vim.eam"

    @property
    def key(self) -> str:
        """The VM's identity across runs: vCenter and instance UUID."""
        return f"{self.vcenter_uuid}/{self.instance_uuid}"


@dataclass(frozen=True)
class SqlNode:
    """One row of sys.dm_os_nodes, without the DAC's node."""

    node_id: int
    memory_node_id: int
    online_schedulers: int
    state: str


@dataclass(frozen=True)
class GuestTopology:
    """The guest's topology as SQL Server shows it; None if this version lacks the column."""

    vcpus: int
    sockets: int | None
    cores_per_socket: int | None
    numa_nodes: int
    """Memory nodes in SQL Server: the guest's vNUMA nodes, never soft-NUMA."""
    sql_cpu_nodes: int
    """SQLOS nodes, including soft-NUMA."""
    soft_numa: str | None
    nodes: tuple[SqlNode, ...] = ()
    visible_online: int = 0
    visible_offline: int = 0
    memory_node_kb: Mapping[int, int] = field(default_factory=dict)
    xtp_pages_kb: Mapping[int, int] = field(default_factory=dict)
    """Kilobytes of memory-optimised pages by memory node (MEMORYCLERK_XTP)."""


READY_LIMIT = 0.05
CO_STOP_LIMIT = 0.03
"""Shares of a vCPU's time above which administrators look for contention (usual thresholds, not a
standard).
"""


@dataclass(frozen=True)
class CpuWaits:
    """How long a VM's vCPUs waited for the host's CPUs, by vSphere's counters; None: no sample.

    The last hour's mean, as shares of one vCPU's time (0.05 is 5%).
    """

    ready: float | None
    """Ready to run while no CPU of the host was free."""
    co_stop: float | None
    """Stopped so that the VM's other vCPUs could catch up."""


def share_of_vcpu(milliseconds: float, interval_s: float, vcpus: int) -> float:
    """A VM's summation counter of an interval, over all vCPUs, as a share of one vCPU's time.

    https://knowledge.broadcom.com/external/article/387750/understanding-the-cpu-ready-values-in-th.html
    """
    return milliseconds / (1000 * interval_s * vcpus)
