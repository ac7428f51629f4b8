"""The guest's topology by ESXi's rules, and how certain it is.

A prediction never replaces an observation: it shows what to expect, which arms cannot differ, and what an arm
without a stated number is compared with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
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
    doubts: tuple[str, ...] = ()
    """What lowers the confidence of a layout that would have a high one."""

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


__all__ = ["Confidence", "HostShape", "Prediction", "host_shape", "predict"]

# From these builds on (6.5 U3, 6.7 U2) a VM wider than a node may get vNUMA with fewer than nine vCPUs,
# according to Denneman ("AMD EPYC Naples vs Rome", 2019-10); VMware's guides still state nine.
_BELOW_MINIMUM_BUILDS = {(6, 5): 13_932_383, (6, 7): 13_006_603}


def predict(
    host: HostShape, settings: Settings, hardware_version: int = 20, unseen: Collection[str] = ()
) -> Prediction:
    """The vNUMA layout of a power-on with these settings on that host.

    `unseen` names unknown settings of the VM: they count as not set, and lower the confidence.
    """
    decisive = tuple(
        [item for item in settings.items() if item[0] in _TYPED or item[0][:5].lower() == "numa."]
    )
    return _predicted(host, decisive, hardware_version, tuple(unseen))


# Typed settings that decide the layout; an estate repeats a few shapes on many VMs.
_TYPED = {
    *("numCPUs", "numCoresPerSocket", "autoCoresPerSocket", "coresPerNumaNode", "autoCoresPerNumaNode"),
    *("cpuHotAddEnabled", "cpuAffinity", esxi.EXPOSE),
}


@lru_cache(maxsize=4096)
def _predicted(
    host: HostShape, decisive: tuple[tuple[str, Value], ...], hardware_version: int, unseen: tuple[str, ...]
) -> Prediction:
    power_on = _Rules(host, dict(decisive), hardware_version)
    layout = power_on.layout(unseen)
    return replace(with_confidence(layout, power_on, unseen), clients=power_on.clients(layout.node_sizes))


class _Rules(PowerOn):
    """The rules of a power-on, in order; the first that applies decides."""

    def layout(self, unseen: Collection[str]) -> Prediction:
        """The sizes of the vNUMA nodes."""
        one = self.one_node()
        if one and self.hides_by_hot_add and self.virtual_numa and esxi.EXPOSE in unseen:
            exposed = _Rules(self.host, {**self.keys, esxi.EXPOSE: True}, self.hardware).layout(())
            if exposed.acceptable != (1,):
                return self.one_or(exposed, f"{one.because}, unless {esxi.EXPOSE} is on, which was not read")
        return one or self.shaped()

    @property
    def hides_by_hot_add(self) -> bool:
        """Whether CPU hot-add shows the guest one node."""
        return self.true("cpuHotAddEnabled") and not (self.virtual_numa and self.true(esxi.EXPOSE))

    def shaped(self) -> Prediction:
        """The layout of a VM that is not forced to one node."""
        return self.by_hand() or self.by_sockets() or self.stored() or self.automatic()

    def one_node(self) -> Prediction | None:
        """The cases in which the guest sees one node whatever its shape."""
        one, release = (self.vcpus,), self.host.release
        if release < esxi.VNUMA_SINCE:
            return Prediction(one, "high", "ESXi before 5.0 has no vNUMA")
        if self.hardware < esxi.MINIMUM_HARDWARE:
            return Prediction(one, "high", "hardware version below 8 has no vNUMA")
        if self.hides_by_hot_add:
            if release == (6, 0):
                # A log of 6.0 shows it; VMware's vCloud Architecture Toolkit says that 6.0 removed it.
                return self.one_or(self.shaped(), "CPU hot-add hides vNUMA; reports for 6.0 disagree")
            return Prediction(one, "high", "CPU hot-add hides vNUMA")
        if self.virtual_numa and self.node_size:
            return None
        minimum = self.number(esxi.MINIMUM)
        if self.vcpus >= (minimum or esxi.DEFAULT_MINIMUM_VCPUS):
            return None
        if minimum or self.vcpus <= self.capacity:
            words = f"fewer than {minimum or esxi.DEFAULT_MINIMUM_VCPUS} vCPUs (numa.vcpu.min)"
            return Prediction(one, "high", words)
        return self.wide_below_minimum()

    def wide_below_minimum(self) -> Prediction:
        """Wider than a host node with fewer than nine vCPUs, which updates of 6.5 and 6.7 changed."""
        release, since = self.host.release, _BELOW_MINIMUM_BUILDS.get(self.host.release)
        words = (
            f"fewer than {esxi.DEFAULT_MINIMUM_VCPUS} vCPUs (numa.vcpu.min), but wider than a host NUMA node"
        )
        if release < esxi.DECOUPLED_SINCE or (since and 0 < self.host.build < since):
            return Prediction((self.vcpus,), "high", words)
        if since and not self.host.build:
            return self.one_or(self.shaped(), f"{words}: updates differ")
        wide = self.shaped()
        if wide.vnuma_nodes == 1:
            return wide
        words = f"{words}: the guides say one node; reports for this release show as many as hold it"
        return Prediction(wide.node_sizes, "low", words, (1,))

    def by_hand(self) -> Prediction | None:
        """A manual node size: vSphere 8's field, or numa.vcpu.maxPerVirtualNode."""
        if self.virtual_numa and self.node_size:
            return Prediction(
                filled(self.vcpus, self.node_size),
                "low" if self.vcpus % self.node_size else "high",
                f"virtualNuma.coresPerNumaNode is {self.node_size}",
            )
        largest = self.number(esxi.MAX_PER_NODE)
        if not largest:
            return None
        sizes, words = filled(self.vcpus, largest), f"numa.vcpu.maxPerVirtualNode is {largest}"
        sockets = self.by_sockets()
        if sockets and sockets.vnuma_nodes != len(sizes):
            # VMware's 6.0 guide says not to set cores per socket with this key, but not which one wins.
            words += f", but {sockets.because}"
            return Prediction(sizes, "low", words, sockets.acceptable)
        return Prediction(sizes, "low" if self.vcpus % largest else "high", words)

    def by_sockets(self) -> Prediction | None:
        """A node per socket: always up to 6.0, from 6.5 on if requested.

        For a VM that fits one host node the documents on releases up to 6.0 allow two readings: Denneman
        (2016) names "more vCPUs than a node has cores" as a condition for vNUMA; VMware's guide does not, and
        a 6.0 log of 10 vCPUs on 10-core nodes shows two.
        """
        if self.per_socket == 1:
            return None
        sizes = evenly(self.vcpus, max(1, self.vcpus // self.per_socket))
        if self.host.release >= esxi.DECOUPLED_SINCE:
            if not (self.host.follow_cores_per_socket or self.true(esxi.FOLLOW)):
                return None
            return Prediction(sizes, "high", "cores per socket are followed: one node per socket")
        if self.vcpus <= self.capacity and len(sizes) > 1:
            words = "ESXi up to 6.0: one node per socket; or one in all, because the VM fits a node"
            return Prediction(sizes, "low", words, (1,))
        return Prediction(sizes, "high", "ESXi up to 6.0: one node per socket")

    def stored(self) -> Prediction | None:
        """The layout of an earlier power-on, kept until the number of vCPUs changes (numa.autosize.once)."""
        largest, cookie = (
            self.number(esxi.AUTOSIZE_MAX),
            str(self.keys.get(esxi.AUTOSIZE_COOKIE.lower()) or ""),
        )
        once = self.keys.get("numa.autosize.once")
        if not largest or (once is not None and not true_of(once)) or self.true("numa.autosize"):
            return None
        if cookie and int_of(cookie) // 10_000 != self.vcpus:
            return None  # observed cookies are at least vCPUs * 10,000; sized again when the count changes
        fresh, sizes = self.automatic(), evenly(self.vcpus, ceil(self.vcpus / largest))
        if len(sizes) == fresh.vnuma_nodes:
            return fresh
        words = "stored by an earlier power-on (numa.autosize)"
        return Prediction(sizes, "low", words, (fresh.vnuma_nodes,))

    def automatic(self) -> Prediction:
        """Sized to the host: the fewest nodes that fit the VM, filled evenly."""
        nodes = max(1, ceil(self.vcpus / self.capacity))
        if nodes == 1:
            return self.fitting()
        if self.host.release >= esxi.SOCKETS_WHOLE_SINCE and self.stated_sockets:
            # ESXi 7 keeps sockets whole when it distributes vCPUs: 30 vCPUs on 2 x 20 cores become 16/14 with
            # 2 cores per socket, 18/12 with 6 (Denneman 2021-12-02).
            sockets = evenly(self.vcpus // self.per_socket, nodes)
            sizes = tuple(count * self.per_socket for count in sockets)
            if sizes[-1] and sizes[0] <= self.capacity and sum(sizes) == self.vcpus:
                sure: Confidence = "high" if len(set(sizes)) == 1 else "low"
                return Prediction(sizes, sure, "wider than a host NUMA node; sockets stay whole")
        sure = "low" if self.vcpus % nodes else "high"
        return Prediction(evenly(self.vcpus, nodes), sure, "wider than a host NUMA node")

    def fitting(self) -> Prediction:
        """A VM that fits a host node gets one. For ESXi 8 and hardware 20 sources disagree.

        Denneman (2022-10-25) says that nodes follow explicit cores per socket there; his run of 2023-03-02
        shows one node, for a VM of an older hardware version.
        """
        one, words = (self.vcpus,), "the vCPUs fit one host NUMA node"
        sockets = self.vcpus // self.per_socket
        if self.virtual_numa and self.stated_sockets and sockets > 1:
            words += "; sources disagree on whether ESXi 8 follows a given number of cores per socket"
            return Prediction(one, "low", words, (sockets,))
        return Prediction(one, "high", words)

    def clients(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """How ESXi splits the VM over host nodes: at least a client per vNUMA node, and as many as it needs.

        numa.consolidate FALSE spreads over every host node, as logs of 6.5 and 8.0 on two nodes show.
        """
        count = max(len(sizes), ceil(self.vcpus / self.capacity))
        if false_of(self.keys.get("numa.consolidate")):
            count = max(count, min(self.host.numa_nodes, self.vcpus))
        if count == len(sizes) and max(sizes) <= self.capacity:
            return sizes
        return evenly(self.vcpus, count)

    def one_or(self, other: Prediction, words: str) -> Prediction:
        """One node, with the other reading's count as the alternative."""
        other_counts = tuple(count for count in other.acceptable if count != 1)
        return Prediction((self.vcpus,), "low", words, other_counts)


# ESXi makes more NUMA clients with these; no source says whether the guest then sees as many nodes. Denneman
# (2016-08-22) names the first for a VM that would fit a node; such a VM of his shows two nodes.
_CLIENT_LIMITS = ("numa.vcpu.maxpermachinenode", "numa.vcpu.maxperclient")

_KNOWN_KEYS = {
    *(
        name.lower()
        for name in (
            esxi.AUTOSIZE_COOKIE,
            esxi.AUTOSIZE_MAX,
            esxi.FOLLOW,
            esxi.MAX_PER_NODE,
            esxi.MINIMUM,
            esxi.PREFER_HT,
        )
    ),
    *("numa.autosize", "numa.autosize.once", "numa.consolidate", "numa.nodeaffinity"),
    "numa.vcpu.corespernode",  # how virtualNuma.coresPerNumaNode appears among the keys
    *_CLIENT_LIMITS,
}

EXTRA_CONFIG, HOT_ADD = "extraConfig", "cpuHotAddEnabled"
"""Parts of a VM that may be unread, as named in an estate: all its keys, or CPU hot-add."""


@dataclass(frozen=True)
class _Doubt:
    """Why a layout is less certain, and the alternative number of nodes, if known."""

    why: str
    instead: int | None = None


def with_confidence(layout: Prediction, power_on: PowerOn, unseen: Collection[str]) -> Prediction:
    """The layout with its confidence lowered by doubts, and with their node counts as alternatives."""
    doubts = [*_by_settings(layout, power_on), *_by_unseen(layout, power_on, unseen)]
    if not doubts:
        return layout
    others = dict.fromkeys([*layout.alternatives, *(doubt.instead for doubt in doubts if doubt.instead)])
    others.pop(layout.vnuma_nodes, None)
    why = tuple(doubt.why for doubt in doubts)
    because = "; ".join([layout.because, *why])
    return replace(layout, confidence="low", because=because, alternatives=tuple(others), doubts=why)


def _by_settings(layout: Prediction, power_on: PowerOn) -> Iterator[_Doubt]:
    """A release, or settings that affect the layout, of which no source says how."""
    if power_on.host.release > esxi.NEWEST_KNOWN:
        known, asked = (".".join(map(str, release)) for release in (esxi.NEWEST_KNOWN, power_on.host.release))
        yield _Doubt(f"no source covers ESXi {asked}; these are the rules for {known}")
    if power_on.keys.get("cpuaffinity") and layout.vnuma_nodes > 1:
        yield _Doubt("CPU affinity ends NUMA management, and no source says whether vNUMA is still shown")
    allowed = str(power_on.keys.get("numa.nodeaffinity") or "")
    if allowed and len(allowed.split(",")) < layout.vnuma_nodes:
        yield _Doubt("numa.nodeAffinity allows fewer host nodes than there would be vNUMA nodes")
    if _spreads_unknown(power_on):
        yield _Doubt(
            f"numa.consolidate is FALSE on a host of {power_on.host.numa_nodes} NUMA nodes: the VM's "
            "memory decides how many of them it is spread over; no source says how"
        )
    if not power_on.may_have_vnuma:
        return
    for name in _CLIENT_LIMITS:
        limit = power_on.number(name)
        if 0 < limit < max(layout.node_sizes):
            yield _Doubt(
                f"{name} is {limit}; no source says whether the guest sees the NUMA clients that it creates",
                ceil(power_on.vcpus / limit),
            )
    others = {name for name, value in power_on.keys.items() if name.startswith("numa.") and value is not None}
    for name in sorted(others - _KNOWN_KEYS):
        yield _Doubt(f"{name} is set; no rule here covers it")


def _spreads_unknown(power_on: PowerOn) -> bool:
    """Whether there are more than two host nodes, and more than the VM's vCPUs need.

    With two, all logs show the VM spread over both. A small VM on more nodes (6 vCPUs and 96 GB on eight) had
    two clients of three, not six of one.
    """
    needed = max(2, ceil(power_on.vcpus / power_on.capacity))
    return false_of(power_on.keys.get("numa.consolidate")) and power_on.host.numa_nodes > needed


def _by_unseen(layout: Prediction, power_on: PowerOn, unseen: Collection[str]) -> Iterator[_Doubt]:
    """What may be set on VM or host but was not read."""
    if not power_on.may_have_vnuma:
        return
    if (
        power_on.host.follow_cores_per_socket is None
        and power_on.per_socket > 1
        and _ignores_sockets(layout, power_on)
    ):
        yield _Doubt(
            "the host's Numa.FollowCoresPerSocket could not be read: if it is set, each socket is a node",
            max(1, power_on.vcpus // power_on.per_socket),
        )
    if power_on.host.prefer_ht is None and _counts_cores(layout, power_on):
        yield _Doubt(
            "the host's Numa.PreferHT could not be read: if it is set, threads count as cores",
            ceil(power_on.vcpus / (power_on.capacity * power_on.host.threads_per_core)),
        )
    if HOT_ADD in unseen and layout.vnuma_nodes > 1:
        yield _Doubt("CPU hot-add was not read; if on, it hides vNUMA", 1)
    if EXTRA_CONFIG in unseen:
        yield _Doubt(
            "the VM's numa.* keys were not read: they may set a node size, preferHT, or the layout of "
            "an earlier power-on"
        )


def _counts_cores(layout: Prediction, power_on: PowerOn) -> bool:
    """Whether the number of nodes is that of the cores, and counting threads would change it."""
    by_vm = power_on.states_prefer_ht or power_on.node_size or power_on.number(esxi.MAX_PER_NODE)
    by_cores = layout.vnuma_nodes == ceil(power_on.vcpus / power_on.capacity) > 1
    return by_cores and power_on.host.threads_per_core > 1 and not by_vm


def _ignores_sockets(layout: Prediction, power_on: PowerOn) -> bool:
    """Whether following the sockets would change the layout, and no setting of the VM decides that."""
    if power_on.host.release < esxi.DECOUPLED_SINCE or power_on.per_socket == 1:
        return False
    by_vm = power_on.keys.get(esxi.FOLLOW.lower()) is not None or power_on.number(esxi.MAX_PER_NODE)
    another = layout.vnuma_nodes != max(1, power_on.vcpus // power_on.per_socket)
    return another and not by_vm and not power_on.node_size
