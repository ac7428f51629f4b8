"""What lowers a prediction's confidence: settings that no source explains, and unread ones."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from math import ceil

from vnuma.domain.topology import release as esxi
from vnuma.domain.topology.layout import PowerOn, Prediction, false_of

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
    because = "; ".join([layout.because, *(doubt.why for doubt in doubts)])
    return replace(layout, confidence="low", because=because, alternatives=tuple(others))


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
