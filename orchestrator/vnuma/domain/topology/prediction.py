"""The guest's topology by ESXi's rules, and how certain it is.

A prediction never replaces an observation: it shows what to expect, which arms cannot differ, and what an arm
without a stated number is compared with.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import ceil

from vnuma.domain.topology import release as esxi
from vnuma.domain.topology.layout import (
    Confidence,
    HostShape,
    PowerOn,
    Prediction,
    evenly,
    false_of,
    filled,
    host_shape,
    int_of,
    true_of,
)
from vnuma.domain.topology.prediction_confidence import with_confidence
from vnuma.domain.vm.setting import Settings

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
    power_on = _Rules(host, settings, hardware_version)
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
