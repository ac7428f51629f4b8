"""What ESXi's rules say the guest will get, and how sure that is.

A prediction is never used in place of an observation: it tells what to expect, which arms cannot
differ, and what counts when an arm states no number of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal

from vnuma.domain.facts import HostFacts
from vnuma.domain.recipe import AUTOSIZE_COOKIE, AUTOSIZE_MAX, DECOUPLED_SINCE, FOLLOW
from vnuma.domain.setting import Settings, Value

Confidence = Literal["high", "low"]

# "numa.vcpu.min": smallest vCPU count that gets a vNUMA topology (vSphere 6.0 resource guide).
DEFAULT_MINIMUM_VCPUS = 9

# SQL Server splits hardware nodes with more than 8 cores into soft-NUMA nodes of about 8
# (https://learn.microsoft.com/sql/database-engine/configure-windows/soft-numa-sql-server).
SOFT_NUMA_CORES = 8


@dataclass(frozen=True)
class HostShape:
    """What of a host decides the layout."""

    release: tuple[int, int]
    numa_nodes: int
    cores_per_node: int
    threads_per_core: int = 1
    follow_cores_per_socket: bool = False
    """The host's advanced option Numa.FollowCoresPerSocket."""


def host_shape(host: HostFacts) -> HostShape:
    """What of a host's facts decides the layout. Unread advanced options count as their defaults."""
    follow = (host.advanced or {}).get("Numa.FollowCoresPerSocket")
    return HostShape(
        host.release.key, len(host.numa_nodes), host.cores_per_node, host.threads_per_core, _true(follow)
    )


@dataclass(frozen=True)
class Prediction:
    """Predicted sizes of the guest's vNUMA nodes in vCPUs, and other node counts the rules allow."""

    node_sizes: tuple[int, ...]
    confidence: Confidence
    because: str
    alternatives: tuple[int, ...] = ()

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
        return sum(ceil(size / SOFT_NUMA_CORES) for size in self.node_sizes)


def predict(host: HostShape, settings: Settings, hardware_version: int = 20) -> Prediction:
    """The vNUMA layout that a power-on with these settings gives on that host."""
    vcpus, per_socket = _number(settings, "numCPUs"), _number(settings, "numCoresPerSocket") or 1
    keys = {name.lower(): value for name, value in settings.items()}
    forced = _uma(host, vcpus, keys, hardware_version)
    if forced:
        return forced
    manual = _manual(host, vcpus, settings, keys)
    if manual:
        return manual
    if host.release < DECOUPLED_SINCE:
        return _coupled(host, vcpus, per_socket, keys)
    if (host.follow_cores_per_socket or _true(keys.get(FOLLOW))) and per_socket > 1:
        return Prediction(
            _even(vcpus, vcpus // per_socket), "high", "cores per socket are followed: a node per socket"
        )
    return _stored(host, vcpus, per_socket, keys) or _automatic(host, vcpus, per_socket, keys)


def _uma(host: HostShape, vcpus: int, keys: Mapping[str, Value], hardware_version: int) -> Prediction | None:
    """The cases in which the guest sees one node whatever its shape."""
    one = (vcpus,)
    if hardware_version < 8:
        return Prediction(one, "high", "hardware version below 8 has no vNUMA")
    if _true(keys.get("cpuhotaddenabled")):
        if host.release < DECOUPLED_SINCE:
            return Prediction(one, "low", "CPU hot-add hides vNUMA; reports for 6.0 disagree")
        if host.release < (8, 0) or not _true(keys.get("exposevnumaoncpuhotadd")):
            return Prediction(one, "high", "CPU hot-add hides vNUMA")
    minimum = _int(keys.get("numa.vcpu.min")) or DEFAULT_MINIMUM_VCPUS
    if vcpus < minimum and not _int(keys.get("coresPerNumaNode".lower())):
        return Prediction(one, "high", f"fewer than {minimum} vCPUs (numa.vcpu.min)")
    return None


def _manual(host: HostShape, vcpus: int, settings: Settings, keys: Mapping[str, Value]) -> Prediction | None:
    """A node size that somebody set: vSphere 8's field, or numa.vcpu.maxPerVirtualNode."""
    cores = _int(settings.get("coresPerNumaNode"))
    if host.release >= (8, 0) and cores and not _true(settings.get("autoCoresPerNumaNode")):
        return Prediction(_filled(vcpus, cores), "high", f"virtualNuma.coresPerNumaNode is {cores}")
    largest = _int(keys.get("numa.vcpu.maxpervirtualnode"))
    if largest:
        return Prediction(
            _filled(vcpus, largest),
            "high" if vcpus % largest == 0 else "low",
            f"numa.vcpu.maxPerVirtualNode is {largest}",
        )
    return None


def _coupled(host: HostShape, vcpus: int, per_socket: int, keys: Mapping[str, Value]) -> Prediction:
    """ESXi up to 6.0: a socket is a node, unless cores per socket is 1.

    For a VM that fits one host node the documents allow two readings: Denneman (2016) names
    "more vCPUs than a node has cores" as a condition for vNUMA; VMware's guide does not, and a 6.0
    log of 10 vCPUs on 10-core nodes shows two.
    """
    if per_socket == 1:
        return _automatic(host, vcpus, per_socket, keys)
    sizes = _even(vcpus, vcpus // per_socket)
    fits = vcpus <= _capacity(host, keys)
    if fits and len(sizes) > 1:
        return Prediction(
            sizes, "low", "ESXi up to 6.0: a node per socket; or one, since the VM fits a node", (1,)
        )
    return Prediction(sizes, "high", "ESXi up to 6.0: a node per socket")


def _stored(host: HostShape, vcpus: int, per_socket: int, keys: Mapping[str, Value]) -> Prediction | None:
    """The layout of an earlier power-on, kept until the number of vCPUs changes (numa.autosize.once)."""
    largest, cookie = _int(keys.get(AUTOSIZE_MAX.lower())), str(keys.get(AUTOSIZE_COOKIE.lower()) or "")
    once = keys.get("numa.autosize.once")
    if not largest or (once is not None and not _true(once)):
        return None
    if cookie and _int(cookie) // 10_000 != vcpus:
        return None  # observed cookies are vCPUs * 10,000 and more; ESXi sizes anew when the count changes
    fresh = _automatic(host, vcpus, per_socket, keys)
    sizes = _even(vcpus, ceil(vcpus / largest))
    if sizes == fresh.node_sizes:
        return fresh
    return Prediction(sizes, "low", "stored by an earlier power-on (numa.autosize)", (fresh.vnuma_nodes,))


def _automatic(host: HostShape, vcpus: int, per_socket: int, keys: Mapping[str, Value]) -> Prediction:
    """Sized to the host: as few nodes as hold the VM, filled evenly."""
    nodes = max(1, ceil(vcpus / _capacity(host, keys)))
    if nodes == 1:
        return Prediction((vcpus,), "high", "the VM fits one host NUMA node")
    if host.release >= (7, 0) and per_socket > 1 and vcpus % per_socket == 0 and vcpus // per_socket >= nodes:
        # ESXi 7 keeps sockets whole when it spreads vCPUs: 30 vCPUs on 2 x 20 cores become 16/14
        # with 2 cores per socket, 18/12 with 6 (Denneman 2021-12-02).
        sizes = tuple(size * per_socket for size in _even(vcpus // per_socket, nodes))
        return Prediction(
            sizes,
            "high" if len(set(sizes)) == 1 else "low",
            "wider than a host NUMA node; sockets stay whole",
        )
    return Prediction(
        _even(vcpus, nodes), "high" if vcpus % nodes == 0 else "low", "wider than a host NUMA node"
    )


def _capacity(host: HostShape, keys: Mapping[str, Value]) -> int:
    threads = host.threads_per_core if _true(keys.get("numa.vcpu.preferht")) else 1
    return max(1, host.cores_per_node * threads)


def _even(vcpus: int, nodes: int) -> tuple[int, ...]:
    """As equal as whole numbers allow, larger first."""
    return tuple(vcpus // nodes + (index < vcpus % nodes) for index in range(nodes))


def _filled(vcpus: int, largest: int) -> tuple[int, ...]:
    """Node by node up to a fixed maximum: 12 vCPUs by 8 are 8 and 4."""
    full, rest = divmod(vcpus, largest)
    return (largest,) * full + ((rest,) if rest else ())


def _number(settings: Settings, name: str) -> int:
    value = settings.get(name)
    return value if isinstance(value, int) else 0


def _int(value: Value) -> int:
    try:
        return int(str(value))
    except ValueError:
        return 0


def _true(value: Value) -> bool:
    return str(value).strip().lower() in {"true", "1"}
