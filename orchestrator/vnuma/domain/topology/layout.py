"""A predicted vNUMA layout, and the host's properties that decide it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from vnuma.domain.topology import release as esxi
from vnuma.domain.vm.facts import HostFacts
from vnuma.domain.vm.setting import Settings, Value

# SQL Server splits hardware nodes with more than 8 cores into soft-NUMA nodes of five to nine, ideally eight
# (https://learn.microsoft.com/sql/database-engine/configure-windows/soft-numa-sql-server).
SOFT_NUMA_CORES = 8
SOFT_NUMA_LEAST = 5


def evenly(vcpus: int, nodes: int) -> tuple[int, ...]:
    """As equal as integers allow, larger first."""
    return tuple(vcpus // nodes + (index < vcpus % nodes) for index in range(nodes))


def lie_evenly(nodes: int, fewest: int, every: int) -> bool:
    """Whether so many vNUMA nodes can lie evenly on a host of `every` NUMA nodes, of which the VM needs
    `fewest`: 4 of 8 vCPUs on four nodes of 14 cores, where three are the fewest.
    """
    return any(nodes % count == 0 for count in range(fewest, every + 1))


def filled(vcpus: int, largest: int) -> tuple[int, ...]:
    """Node by node up to a fixed maximum: 12 vCPUs by 8 are 8 and 4."""
    full, rest = divmod(vcpus, largest)
    return (largest,) * full + ((rest,) if rest else ())


def soft_numa_nodes(cores: int) -> int:
    """Number of soft-NUMA nodes that automatic soft-NUMA makes of a hardware node: 2 for 16 cores,
    1 for 9.
    """
    parts = -(-cores // SOFT_NUMA_CORES)
    return parts - 1 if parts > 1 and cores // parts < SOFT_NUMA_LEAST else max(parts, 1)


Confidence = Literal["high", "low"]


@dataclass(frozen=True)
class HostShape:
    """The host's properties that decide the layout."""

    release: tuple[int, int]
    numa_nodes: int
    cores_per_node: int
    threads_per_core: int = 1
    follow_cores_per_socket: bool | None = False
    """The host's advanced option Numa.FollowCoresPerSocket; None: it could not be read."""
    build: int = 0
    """ESXi's build number; 0: unknown."""
    prefer_ht: bool | None = False
    """The host's advanced option Numa.PreferHT; None: it could not be read."""


_BUILD_DIGITS = 12


def host_shape(host: HostFacts) -> HostShape:
    """The part of a host's facts that decides the layout."""
    build = host.release.build
    return HostShape(
        host.release.key,
        len(host.numa_nodes),
        host.cores_per_node,
        host.threads_per_core,
        _option(host, esxi.HOST_FOLLOW),
        int(build) if build.isdecimal() and len(build) <= _BUILD_DIGITS else 0,
        _option(host, esxi.HOST_PREFER_HT),
    )


def _option(host: HostFacts, name: str) -> bool | None:
    """Whether a host's option is on; None: its options were not read."""
    return None if host.advanced is None else true_of(host.advanced.get(name))


def host_by_default(host: HostFacts) -> HostShape:
    """The same with defaults for unread options, for rules that report those themselves."""
    shape = host_shape(host)
    return replace(
        shape,
        follow_cores_per_socket=bool(shape.follow_cores_per_socket),
        prefer_ht=bool(shape.prefer_ht),
    )


@dataclass(frozen=True)
class Prediction:
    """Predicted sizes of the guest's vNUMA nodes in vCPUs, and other node counts the rules allow."""

    node_sizes: tuple[int, ...]
    confidence: Confidence
    because: str
    alternatives: tuple[int, ...] = ()
    clients: tuple[int, ...] = ()
    """vCPUs of each NUMA client, the unit that ESXi places on one host node (PPD in vmware.log)."""

    @property
    def vnuma_nodes(self) -> int:
        """Number of vNUMA nodes; SQL Server shows as many memory nodes."""
        return len(self.node_sizes)

    @property
    def acceptable(self) -> tuple[int, ...]:
        """Every node count that the rules allow, the predicted one first."""
        return (self.vnuma_nodes, *self.alternatives)

    @property
    def sql_cpu_nodes(self) -> int:
        """SQLOS nodes with automatic soft-NUMA on (SQL Server 2016 and later)."""
        return self.cpu_nodes(soft_numa=True)

    def cpu_nodes(self, *, soft_numa: bool) -> int:
        """SQLOS nodes with automatic soft-NUMA on or off."""
        return len(self.cpu_node_sizes(soft_numa=soft_numa))

    def cpu_node_sizes(self, *, soft_numa: bool) -> tuple[int, ...]:
        """vCPUs of each SQLOS node in order; soft-NUMA splits a vNUMA node as evenly as possible."""
        sizes: list[int] = []
        for size in self.node_sizes:
            parts = soft_numa_nodes(size) if soft_numa else 1
            sizes += [size // parts + (part < size % parts) for part in range(parts)]
        return tuple(sizes)


class PowerOn:
    """One power-on: the host, and the VM's settings by lower-case name."""

    def __init__(self, host: HostShape, settings: Settings, hardware_version: int) -> None:
        self.host = host
        self.keys = {name.lower(): value for name, value in settings.items()}
        self.hardware = hardware_version
        self.vcpus = self.number("numCPUs")
        # vSphere also shows numbers that it chose itself; they have no effect.
        automatic = self.true("autoCoresPerSocket")
        self.per_socket = 1 if automatic else self.number("numCoresPerSocket") or 1
        self.stated_sockets = not automatic and self.number("numCoresPerSocket") > 1
        counts_threads = self.true(esxi.PREFER_HT) or (bool(host.prefer_ht) and not self.states_prefer_ht)
        self.capacity = max(1, host.cores_per_node * (host.threads_per_core if counts_threads else 1))

    @property
    def states_prefer_ht(self) -> bool:
        """Whether the VM has a preferHT of its own, whatever the host's option says."""
        return self.keys.get(esxi.PREFER_HT.lower()) is not None

    @property
    def may_have_vnuma(self) -> bool:
        """Whether release, hardware and the number of vCPUs allow a vNUMA topology at all."""
        enough = self.vcpus >= (self.number(esxi.MINIMUM) or esxi.DEFAULT_MINIMUM_VCPUS)
        return self.host.release >= esxi.VNUMA_SINCE and self.hardware >= esxi.MINIMUM_HARDWARE and enough

    @property
    def virtual_numa(self) -> bool:
        """Whether release and hardware have virtualNuma."""
        return self.host.release >= esxi.VIRTUAL_NUMA_SINCE and self.hardware >= esxi.VIRTUAL_NUMA_HARDWARE

    @property
    def automatic_sockets(self) -> bool:
        """Whether vSphere chooses the cores per socket at power-on."""
        return self.virtual_numa and self.true("autoCoresPerSocket")

    @property
    def node_size(self) -> int:
        """virtualNuma.coresPerNumaNode as set manually; 0: automatic."""
        return 0 if self.true("autoCoresPerNumaNode") else self.number("coresPerNumaNode")

    def number(self, name: str) -> int:
        """A setting as a number; 0 if it is not one."""
        return int_of(self.keys.get(name.lower()))

    def true(self, name: str) -> bool:
        """Whether a setting is on."""
        return true_of(self.keys.get(name.lower()))


def int_of(value: Value) -> int:
    """A value as a number; 0 if it is not one."""
    try:
        return int(str(value))
    except ValueError:
        return 0


def true_of(value: Value) -> bool:
    """Whether a value is a switch that is on."""
    return str(value).strip().lower() in {"true", "1"}


def false_of(value: Value) -> bool:
    """Whether a value is a switch that is off."""
    return str(value).strip().lower() in {"false", "0"}
