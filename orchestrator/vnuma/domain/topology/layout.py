"""A predicted vNUMA layout, and the host's properties that decide it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from vnuma.domain.topology.split import soft_numa_nodes
from vnuma.domain.vm.facts import HostFacts

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


_BUILD_DIGITS = 12


def host_shape(host: HostFacts) -> HostShape:
    """The part of a host's facts that decides the layout."""
    options, build = host.advanced, host.release.build
    follow = (
        None if options is None else str(options.get("Numa.FollowCoresPerSocket")).lower() in {"1", "true"}
    )
    return HostShape(
        host.release.key,
        len(host.numa_nodes),
        host.cores_per_node,
        host.threads_per_core,
        follow,
        int(build) if build.isdecimal() and len(build) <= _BUILD_DIGITS else 0,
    )


def host_by_default(host: HostFacts) -> HostShape:
    """The same with defaults for unread options, for rules that report those themselves."""
    shape = host_shape(host)
    return replace(shape, follow_cores_per_socket=bool(shape.follow_cores_per_socket))


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
