"""Questions about a VM's shape on its host that several rules share, and common fixes."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from vnuma.checks.facts import Facts
from vnuma.checks.rule import Fix, ObjectKind
from vnuma.domain.topology import release as esxi
from vnuma.domain.topology.prediction import Prediction, host_shape, lie_evenly
from vnuma.domain.vm.change import change_to
from vnuma.domain.vm.facts import HostFacts
from vnuma.domain.vm.setting import Settings
from vnuma.words.plain_text import counted, gigabytes

# A smaller node gives a query too few CPUs: Microsoft's guidance keeps MAXDOP within a node.
SMALLEST_NODE = 4


def node_memory(host: HostFacts) -> str:
    """Memory of the host's smallest NUMA node; marked where it is an estimate."""
    words = gigabytes(host.node_memory_mb)
    return f"{words}, estimated as the host's memory / nodes" if host.node_memory_estimated else words


def nodes_needed(facts: Facts) -> int:
    """The fewest host NUMA nodes with enough cores for the VM's vCPUs; enough threads with preferHT (T16)."""
    return ceil(facts.vcpus / facts.node_capacity)


def even_nodes(facts: Facts, least: int = 1) -> int:
    """The fewest of the host's NUMA nodes, at least `least`, that hold the vCPUs evenly, SMALLEST_NODE on
    each unless no fewer nodes hold them; 0: none do.
    """
    needed = max(nodes_needed(facts), least)
    most = max(needed, facts.vcpus // SMALLEST_NODE)
    counts = range(needed, min(most, len(facts.host.numa_nodes)) + 1)
    return next((count for count in counts if facts.vcpus % count == 0), 0)


def nodes_for_all(facts: Facts) -> int:
    """The fewest host NUMA nodes for vCPUs and memory, as far as both are known; at most all."""
    memory = nodes_for_memory(facts) if facts.host.node_memory_mb else 1
    return min(max(nodes_needed(facts), memory), len(facts.host.numa_nodes))


def unmatched_sockets(sockets: int, vcpus: int, nodes: int, needed: int) -> bool:
    """Whether sockets hide the vNUMA nodes: one for each vCPU, or fewer than the host nodes needed."""
    return sockets != nodes and (sockets == vcpus or sockets < needed)


def poor_nodes(nodes: int, smallest: int, fewest: int, every: int) -> bool:
    """Whether more vNUMA nodes than the fewest host nodes are too small for MAXDOP, or cannot lie evenly on
    the host's.
    """
    return nodes > fewest and (smallest < SMALLEST_NODE or not lie_evenly(nodes, fewest, every))


def fits_memory(facts: Facts) -> bool:
    """Whether the VM's memory fits the host's smallest NUMA node."""
    return facts.memory_mb <= facts.local_memory_mb


def nodes_for_memory(facts: Facts) -> int:
    """The fewest host NUMA nodes whose memory holds the VM's."""
    return ceil(facts.memory_mb / facts.local_memory_mb)


def shape_of(facts: Facts) -> dict[str, str]:
    """vCPUs and memory, and those of a host NUMA node."""
    node = node_memory(facts.host) if facts.host.node_memory_mb else "not known"
    if facts.host.local_memory_mb < facts.memory_mb <= facts.host.node_memory_mb:
        node += f" ({gigabytes(facts.host.local_memory_mb)} without the VM's overhead)"
    return {
        "vCPUs / cores a node": f"{facts.vcpus} / {facts.cores_per_node}",
        "memory / memory of a node": f"{gigabytes(facts.memory_mb)} / {node}",
    }


def follows_cores_per_socket(facts: Facts) -> bool:
    """Whether cores per socket determine vNUMA on ESXi 6.5 and later, by a setting of VM or host."""
    return facts.key_on(esxi.FOLLOW) or bool(host_shape(facts.host).follow_cores_per_socket)


def node_size_is_set(facts: Facts) -> bool:
    """Whether the size of the vNUMA nodes is set instead of chosen by ESXi."""
    return bool(facts.manual_node_size or facts.key(esxi.MAX_PER_NODE) or follows_cores_per_socket(facts))


def split_over(facts: Facts, nodes: int) -> Fix:
    """Sockets as large as a node's share of the vCPUs."""
    if facts.vcpus % nodes:
        return Fix(f"Use a number of vCPUs that {nodes} divides, with one socket per node.")
    size = facts.vcpus // nodes
    return Fix(
        f"Set {size} cores per socket: {nodes} sockets, one per node.",
        arm={"topology": f"{nodes}x{size}", "vnuma_nodes": nodes},
        settings={"numCoresPerSocket": size},
    )


def node_per_socket(facts: Facts, nodes: int) -> Fix:
    """As many sockets as nodes, with the settings of this release that make each socket a node."""
    size = facts.vcpus // nodes
    if facts.has_virtual_numa:
        return Fix(
            f"Set {size} cores per socket and {size} cores per NUMA node: {counted(nodes, 'node')}.",
            arm={"topology": f"{nodes}x{size}", "cores_per_numa_node": size},
            settings={"numCoresPerSocket": size, "coresPerNumaNode": size},
        )
    keys: dict[str, str | None] = {esxi.MAX_PER_NODE: None} if facts.key(esxi.MAX_PER_NODE) else {}
    if size == 1:  # which never makes a socket a node
        keys = {esxi.MAX_PER_NODE: "1"}
    elif facts.release >= esxi.DECOUPLED_SINCE:
        keys[esxi.FOLLOW] = "1"
    if nodes > 1 and facts.vcpus < (facts.key_number(esxi.MINIMUM) or esxi.DEFAULT_MINIMUM_VCPUS):
        keys[esxi.MINIMUM] = str(facts.vcpus)
    words = "".join(f", {key} {value or 'removed'}" for key, value in keys.items())
    return Fix(
        f"Set {size} cores per socket{words}: {counted(nodes, 'node')}.",
        arm={"topology": f"{nodes}x{size}", "vnuma_nodes": nodes},
        settings={"numCoresPerSocket": size, **keys},
    )


def nodes_for_memory_alone(facts: Facts, nodes: int) -> Fix:
    """A node per socket, without the CPU hot-add that hides it: T11 and T12 do not warn for memory alone."""
    fix = node_per_socket(facts, nodes)
    settings = facts.vm.settings
    if nodes == 1 or settings.get("cpuHotAddEnabled") is not True or settings.get(esxi.EXPOSE) is True:
        return fix
    if not change_to(settings, fix.settings):
        return NO_HOT_ADD
    return replace(
        fix,
        text=f"{fix.text} {NO_HOT_ADD.text}",
        arm={**fix.arm, **NO_HOT_ADD.arm},
        settings={**fix.settings, **NO_HOT_ADD.settings},
    )


NO_HOT_ADD = Fix(
    "Turn CPU hot-add off with the VM off.", arm={"cpu_hot_add": "off"}, settings={"cpuHotAddEnabled": False}
)
NO_NODE_SIZE = Fix(
    "Remove numa.vcpu.maxPerVirtualNode with the VM off.",
    arm={"max_per_virtual_node": "auto"},
    settings={esxi.MAX_PER_NODE: None},
)
UNPIN = Fix("Clear the affinity with the VM off.", arm={"affinity": "none"}, settings={"cpuAffinity": ()})


def without_stored(settings: Settings) -> Settings:
    """The settings without the layout that an earlier power-on stored, which a fresh sizing replaces."""
    stored = {esxi.AUTOSIZE_COOKIE.lower(), esxi.AUTOSIZE_MAX.lower()}
    return {name: value for name, value in settings.items() if name.lower() not in stored}


def pinned(facts: Facts) -> str:
    """The CPUs that the VM is pinned to, abbreviated; empty: none."""
    cpus = facts.affinity
    return (
        ",".join(map(str, cpus)) if len(cpus) < 9 else f"{cpus[0]},{cpus[1]}..{cpus[-1]} ({len(cpus)} CPUs)"
    )


def host_object(host: HostFacts) -> tuple[ObjectKind, str, str]:
    """The host as the object to change."""
    return "host", host.name, host.moid


def nodes_of(prediction: Prediction) -> str:
    """A predicted count, and the alternatives that the rules allow."""
    others = "".join(f", else {count}" for count in prediction.alternatives)
    return f"{prediction.vnuma_nodes} ({prediction.confidence} confidence{others})"
