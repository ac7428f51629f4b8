"""Topology rules on the VM's own shape: sockets, sizes, and the fit to the host's NUMA nodes."""

from __future__ import annotations

from math import ceil

from vnuma.checks.facts import Facts
from vnuma.checks.rule import Applies, Fail, Fix, Severity, rule
from vnuma.checks.rules import sources
from vnuma.checks.rules.shape_questions import (
    even_nodes,
    fits_memory,
    node_per_socket,
    node_size_is_set,
    nodes_for_memory,
    nodes_for_memory_alone,
    nodes_needed,
    nodes_of,
    shape_of,
    split_over,
)
from vnuma.domain.topology import release as esxi
from vnuma.domain.topology.forecast import MOST_SEEN_LOCAL
from vnuma.domain.topology.prediction import lie_evenly
from vnuma.domain.topology.topology import topologies
from vnuma.words.plain_text import gigabytes


@rule(
    "T01",
    Severity.BLOCK,
    "Cores per socket do not divide the vCPUs",
    condition="numCPUs is not a multiple of numCoresPerSocket",
    consequence="The last socket would be only partly filled: vSphere refuses the shape, or stores it and "
    "the VM does not power on. Nothing is predicted for it.",
    fix="Choose cores per socket that divide the number of vCPUs.",
    sources=(
        "https://docs.ansible.com/ansible/latest/collections/vmware/vmware_rest/"
        "vcenter_vm_hardware_cpu_module.html",
        "https://github.com/vmware/pyvmomi-community-samples/issues/627",
        "https://blog.solori.net/2010/11/08/short-take-vsphere-multi-core-virtual-machines/",
    ),
    reads="vm",
)
def t01(facts: Facts) -> Fail | None:
    if facts.vcpus % facts.per_socket == 0:
        return None
    nearest = min(topologies(facts.vcpus), key=lambda shape: abs(shape.cores_per_socket - facts.per_socket))
    return Fail(
        {"vCPUs": str(facts.vcpus), "cores per socket": str(facts.per_socket)},
        Fix(
            f"Use {nearest.cores_per_socket} cores per socket, or another divisor of {facts.vcpus}.",
            arm={"topology": str(nearest)},
            settings={"numCoresPerSocket": nearest.cores_per_socket},
        ),
    )


@rule(
    "T05",
    Severity.WARN,
    "vCPUs split unevenly over nodes",
    condition="the VM is wider than a host NUMA node and cores per socket (above 1, not automatic) do not "
    "divide the vCPUs of a node; a note if the predicted split is even anyway",
    consequence="ESXi 7 and later keep sockets whole when they spread vCPUs, so one node gets more of them "
    "than another (30 vCPUs on 2 x 20 cores: 16 and 14 with 2 cores per socket, 18 and 12 with 6).",
    fix="Set cores per socket to the vCPUs of one node: vCPUs divided by the nodes used.",
    sources=(sources.CORES_PER_SOCKET_7,),
    reads="vm host",
    applies=Applies(since=esxi.DECOUPLED_SINCE),
    yields_to={
        "T11": "While CPU hot-add hides vNUMA the guest has one node, so this has no effect: fix T11 first.",
        "T12": "While CPU hot-add forces one node, this has no effect: fix T12 first.",
        "T08": "These vCPUs cannot be spread evenly in any shape: see T08 first.",
    },
    related=("T08", "T11"),
)
def t05(facts: Facts) -> Fail | None:
    nodes = nodes_needed(facts)
    if nodes == 1 or facts.per_socket == 1 or node_size_is_set(facts):
        return None
    if facts.vm.settings.get("autoCoresPerSocket") is True:
        return None
    per_node = ceil(facts.vcpus / nodes)
    if per_node % facts.per_socket == 0 and facts.vcpus % nodes == 0:
        return None
    even = len(set(facts.prediction.node_sizes)) == 1
    return Fail(
        {
            **shape_of(facts),
            "cores per socket": str(facts.per_socket),
            "predicted split": "/".join(map(str, facts.prediction.node_sizes))
            + f" ({facts.doubted_prediction.confidence} confidence)",
        },
        split_over(facts, nodes),
        severity=Severity.INFO if even else None,
        matters="Nodes are predicted to be even, but a virtual socket spans two of them." if even else "",
    )


@rule(
    "T06",
    Severity.WARN,
    "Too few vCPUs for vNUMA, though the VM is wider than a node",
    condition="fewer vCPUs than numa.vcpu.min (9 by default) in a VM that exceeds one host NUMA node in "
    "vCPUs or memory, or that is studied with several sockets",
    consequence="According to VMware's guides the guest sees one node and cannot know which memory is "
    "remote. If the VM has more vCPUs than a node has cores, updates of 6.5 and 6.7 and later releases may "
    "show its nodes.",
    fix="Lower numa.vcpu.min on the VM to its number of vCPUs; if only its memory is too large for a node, "
    "set the nodes too, because ESXi does not count memory.",
    sources=(sources.ADVANCED_65, sources.VNUMA_65),
    reads="vm host",
    related=("T09",),
)
def t06(facts: Facts) -> Fail | None:
    minimum = facts.key_number("numa.vcpu.min") or esxi.DEFAULT_MINIMUM_VCPUS
    wide = facts.vcpus > facts.node_capacity or not fits_memory(facts)
    if facts.vcpus < 2 or facts.vcpus >= minimum or node_size_is_set(facts):
        return None
    if not wide and not (facts.studied and facts.sockets > 1):
        return None
    return Fail(
        {
            **shape_of(facts),
            "numa.vcpu.min": facts.key("numa.vcpu.min") or f"not set ({minimum})",
            "predicted nodes": nodes_of(facts.doubted_prediction),
        },
        _show_nodes(facts),
    )


def _show_nodes(facts: Facts) -> Fix:
    """numa.vcpu.min; or nodes by hand if the vCPUs fit one, since ESXi does not count memory."""
    lower = Fix(
        f"Set numa.vcpu.min to {facts.vcpus} with the VM off.",
        arm={"numa_vcpu_min": facts.vcpus},
        settings={"numa.vcpu.min": str(facts.vcpus)},
    )
    if facts.vcpus > facts.node_capacity:
        return lower
    needed = nodes_for_memory(facts)
    nodes = even_nodes(facts, needed) if needed > 1 else 0
    return nodes_for_memory_alone(facts, nodes) if nodes else lower


@rule(
    "T07",
    Severity.INFO,
    "Fits one host NUMA node",
    condition="the vCPUs fit the cores of one host NUMA node, and the memory fits its memory; what is left "
    "of it is named if that is less than an eighth",
    consequence="Sized by ESXi, the guest gets one vNUMA node: usually the best shape.",
    fix="No change needed.",
    sources=(sources.DECOUPLED, sources.LARGE_MEMORY),
    reads="vm host",
    applies=Applies(since=esxi.DECOUPLED_SINCE),
    related=("T09",),
)
def t07(facts: Facts) -> Fail | None:
    facts.require_whole_sockets()
    if facts.vcpus > facts.cores_per_node or not fits_memory(facts) or node_size_is_set(facts):
        return None
    left = facts.node_memory_mb - facts.memory_mb
    tight = facts.memory_mb > MOST_SEEN_LOCAL * facts.node_memory_mb
    need = {"left for ESXi and other VMs": f"{gigabytes(left)}: some of its memory may be remote"}
    return Fail({**shape_of(facts), **(need if tight else {})})


@rule(
    "T08",
    Severity.WARN,
    "vCPUs cannot be spread evenly over nodes",
    condition="more vCPUs than a host NUMA node has cores, and their number is not divisible by the number "
    "of nodes needed; passes if a set node size spreads them evenly over more of the host's nodes",
    consequence="One node has more vCPUs than another; threads on it share caches and memory channels with "
    "more others.",
    fix="Spread them over more of the host's nodes, or use a number of vCPUs that divides evenly over the "
    "smallest number of nodes that holds it.",
    sources=(sources.RIGHT_SIZING, sources.VMCO),
    reads="vm host",
    yields_to={"T10": "The VM has more vCPUs than the host has cores: see T10 first."},
    related=("T05", "T10"),
)
def t08(facts: Facts) -> Fail | None:
    nodes = nodes_needed(facts)
    if nodes == 1 or facts.vcpus % nodes == 0:
        return None
    observed = {**shape_of(facts), "nodes needed": str(nodes)}
    if even := even_nodes(facts):
        if node_size_is_set(facts) and _is_even(facts, nodes):
            return None
        return Fail(observed, node_per_socket(facts, even))
    lower, upper = facts.vcpus - facts.vcpus % nodes, facts.vcpus + nodes - facts.vcpus % nodes
    return Fail(
        observed,
        Fix(
            f"Use {lower} or {upper} vCPUs, {lower // nodes} or {upper // nodes} on each of {nodes} nodes.",
            settings={"numCPUs": lower, "numCoresPerSocket": lower // nodes},
        ),
    )


def _is_even(facts: Facts, needed: int) -> bool:
    """Whether the guest's nodes are equal and can lie evenly on the host's."""
    sizes = facts.prediction.node_sizes
    return len(set(sizes)) == 1 and lie_evenly(len(sizes), needed, len(facts.host.numa_nodes))


@rule(
    "T09",
    Severity.WARN,
    "More memory than its NUMA nodes have",
    condition="memory and the VM's overhead (1/128 of it) exceed the host NUMA nodes that the vCPUs need "
    "(ESXi does not count memory), or the nodes that are set",
    consequence="The guest sees only these nodes, but part of its memory is on another: remote, and the "
    "guest cannot know (published example: 226 GB local, 155 GB remote).",
    fix="Set as many nodes as the memory needs, with a socket for each. Before ESXi 8 numa.consolidate FALSE "
    "spreads the VM too, but does not show the guest its nodes.",
    sources=(sources.LARGE_MEMORY,),
    reads="vm host",
    related=("T06", "T07"),
)
def t09(facts: Facts) -> Fail | None:
    needed = nodes_for_memory(facts)
    if needed <= nodes_needed(facts):
        return None
    shaped = node_size_is_set(facts) or facts.release < esxi.DECOUPLED_SINCE
    if shaped and facts.prediction.vnuma_nodes >= needed:
        return None
    if (facts.key("numa.consolidate") or "").lower() == "false":
        return None
    return Fail(shape_of(facts), _spread_for_memory(facts))


def _spread_for_memory(facts: Facts) -> Fix:
    least, every = nodes_for_memory(facts), len(facts.host.numa_nodes)
    if least > every:
        return Fix(f"Reduce memory: all {every} nodes of the host hold less than this.")
    if nodes := even_nodes(facts, least):
        return nodes_for_memory_alone(facts, nodes)
    fitting = gigabytes(nodes_needed(facts) * facts.local_memory_mb)
    return Fix(f"Reduce memory to {fitting}, or use a number of vCPUs that {least} divides.")


@rule(
    "T10",
    Severity.BLOCK,
    "More vCPUs than the host has cores",
    condition="numCPUs exceeds the host's physical cores",
    consequence="vCPUs share cores with each other; no topology can compensate.",
    fix="Use at most as many vCPUs as the host has cores.",
    sources=(sources.VMCO, sources.RIGHT_SIZING),
    reads="vm host",
)
def t10(facts: Facts) -> Fail | None:
    if facts.vcpus <= facts.host.cores:
        return None
    return Fail(
        {"vCPUs": str(facts.vcpus), "host cores": str(facts.host.cores)},
        Fix(f"Use at most {facts.host.cores} vCPUs.", settings={"numCPUs": facts.host.cores}),
    )
