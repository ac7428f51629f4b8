"""Affinity: the logical CPUs a VM is pinned to, its NUMA nodes, and the source of its memory."""

from __future__ import annotations

from collections.abc import Sequence

from vnuma.domain.arm.arm import Arm, PhysicalCores
from vnuma.domain.vm.facts import HostFacts, NumaNode
from vnuma.domain.vm.setting import Value
from vnuma.errors import ArmImpossible


def affinity_settings(arm: Arm, vcpus: int, host: HostFacts) -> dict[str, Value]:
    """The CPUs that an arm pins the VM to. Raises ArmImpossible, also for unknown nodes of the others."""
    desired: dict[str, Value] = {}
    match arm.affinity:
        case "keep":
            pass
        case "none":
            desired["cpuAffinity"] = ()
        case "physical_cores":
            desired["cpuAffinity"] = physical_cores(host, vcpus)
        case PhysicalCores(physical_cores="fewest", spare=spare):
            desired["cpuAffinity"] = physical_cores(host, vcpus, spare=spare)
        case PhysicalCores(physical_cores=nodes, spare=spare):
            assert not isinstance(nodes, str)
            desired["cpuAffinity"] = physical_cores(host, vcpus, nodes=nodes, spare=spare)
        case cpus:
            refuse_impossible(cpus, vcpus, host)
            desired["cpuAffinity"] = tuple(sorted(set(cpus)))
    for field in ("numa_node_affinity", "memory_affinity"):
        if isinstance(nodes := getattr(arm, field), tuple):
            _refuse_unknown_nodes(nodes, host, field)
    return desired


def core_firsts(node: NumaNode, threads_per_core: int) -> tuple[int, ...]:
    """The first logical CPU of each physical core of a node (see `HostFacts.core_of_cpu`)."""
    return tuple(sorted(node.cpus)[::threads_per_core])


def physical_cores(
    host: HostFacts, vcpus: int, *, nodes: Sequence[int] | None = None, spare: int = 0
) -> tuple[int, ...]:
    """One logical CPU per physical core for `vcpus` vCPUs, on as few host NUMA nodes as possible.

    If one node is enough, the lowest such is used alone; otherwise nodes are filled evenly, and so are given
    `nodes`. `spare` adds that many cores of the same nodes, or without `nodes` of others if necessary. Raises
    ArmImpossible for too few physical cores.
    """
    cores = {node.id: core_firsts(node, host.threads_per_core) for node in host.numa_nodes}
    if nodes is None:
        chosen, more = _fewest_nodes(host, cores, vcpus), sorted(cores)
    else:
        _refuse_unknown_nodes(nodes, host, "affinity")
        chosen = more = sorted(set(nodes))
    taken = _evenly([cores[node] for node in chosen], vcpus)
    order = [*chosen, *(node for node in more if node not in chosen)]
    free = [cpu for node in order for cpu in cores[node] if cpu not in taken]
    if len(taken) < vcpus or len(free) < spare:
        where = " and ".join(f"NUMA node {node}" for node in chosen) if nodes else "the host"
        have = sum(len(cores[node]) for node in more)
        raise ArmImpossible(
            "T10",
            f"{where} of {host.name} has {have} physical cores, but {vcpus} vCPUs and {spare} spare "
            "need one core each.",
            fix="Name more NUMA nodes, use fewer vCPUs, or affinity: none.",
        )
    return tuple(sorted([*taken, *free[:spare]]))


def _fewest_nodes(host: HostFacts, cores: dict[int, tuple[int, ...]], vcpus: int) -> list[int]:
    """As few nodes as have that many cores: of equally few, the lowest numbered."""
    sizes = {node: len(cores[node]) for node in sorted(cores)}
    largest = sorted(sizes.values(), reverse=True)
    count = next((count for count in range(1, len(sizes) + 1) if sum(largest[:count]) >= vcpus), 0)
    if not count:
        raise ArmImpossible(
            "T10",
            f"{host.name} has {host.cores} physical cores, but {vcpus} vCPUs need one core each.",
            fix="Use fewer vCPUs, another host, or affinity: none.",
        )
    chosen: list[int] = []
    for node in sizes:
        rest = sorted((sizes[other] for other in sizes if other > node), reverse=True)
        best = sum(sizes[one] for one in [*chosen, node]) + sum(rest[: count - len(chosen) - 1])
        if len(chosen) < count and best >= vcpus:
            chosen.append(node)
    return chosen


def _evenly(nodes: list[tuple[int, ...]], vcpus: int) -> tuple[int, ...]:
    """Take CPUs from the nodes in turn, so that all are used evenly."""
    taken: list[int] = []
    for depth in range(max(map(len, nodes))):
        taken += [node[depth] for node in nodes if depth < len(node)][: vcpus - len(taken)]
    return tuple(sorted(taken))


def refuse_impossible(cpus: tuple[int, ...], vcpus: int, host: HostFacts) -> None:
    """Raise ArmImpossible for a CPU list that vSphere would refuse or that has no effect."""
    known = {cpu for node in host.numa_nodes for cpu in node.cpus}
    unknown = sorted(set(cpus) - known)
    if unknown:
        raise ArmImpossible(
            "A04",
            f"affinity names CPU {unknown[0]}, but {host.name} has logical CPUs 0 to {max(known)}.",
            fix="Correct the list, or use affinity: physical_cores.",
        )
    if len(set(cpus)) < vcpus:
        raise ArmImpossible(
            "A04",
            (
                f"affinity lists {len(set(cpus))} CPUs for {vcpus} vCPUs; vSphere requires at least one "
                "for each."
            ),
            fix="Add CPUs to the list, or use affinity: physical_cores.",
        )
    if set(cpus) == known:
        raise ArmImpossible(
            "A04",
            f"affinity lists every logical CPU of {host.name}, which vSphere treats as no affinity.",
            fix="Remove CPUs from the list, or use affinity: none.",
        )


def _refuse_unknown_nodes(nodes: Sequence[int], host: HostFacts, field: str) -> None:
    known = sorted(node.id for node in host.numa_nodes)
    unknown = sorted(set(nodes) - set(known))
    if unknown:
        has = "one NUMA node" if len(known) == 1 else f"the NUMA nodes {', '.join(map(str, known))}"
        raise ArmImpossible(
            "T17",
            f"{field} names NUMA node {unknown[0]}, but {host.name} has {has}.",
            fix="Correct the list." if len(known) > 1 else "Use a host with several NUMA nodes.",
        )
