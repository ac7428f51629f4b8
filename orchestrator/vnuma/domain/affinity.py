"""CPU affinity: which logical CPUs of the host a VM is pinned to."""

from __future__ import annotations

from vnuma.domain.facts import HostFacts, NumaNode
from vnuma.errors import PreflightBlocked


def core_firsts(node: NumaNode, threads_per_core: int) -> tuple[int, ...]:
    """The first logical CPU of each physical core of a node.

    ESXi numbers the threads of a core consecutively: with hyper-threading 2k and 2k+1 share a core
    (VMware Cloud on AWS performance guide, "Hyper-Threading and CPU affinity").
    """
    return tuple(sorted(node.cpus)[::threads_per_core])


def physical_cores(host: HostFacts, vcpus: int) -> tuple[int, ...]:
    """One logical CPU per physical core for `vcpus` vCPUs, on as few host NUMA nodes as possible.

    A node that can hold all is taken alone (the lowest numbered); otherwise nodes are filled evenly.
    Raises PreflightBlocked when the host has fewer physical cores.
    """
    cores = [core_firsts(node, host.threads_per_core) for node in sorted(host.numa_nodes, key=lambda n: n.id)]
    for node in cores:
        if len(node) >= vcpus:
            return node[:vcpus]
    for count in range(2, len(cores) + 1):
        chosen = cores[:count]
        if sum(map(len, chosen)) >= vcpus:
            return _evenly(chosen, vcpus)
    raise PreflightBlocked(
        f"{host.name} has {host.cores} physical cores, but {vcpus} vCPUs are to be pinned to one core each.",
        fix="Use fewer vCPUs, another host, or affinity: none.",
    )


def _evenly(nodes: list[tuple[int, ...]], vcpus: int) -> tuple[int, ...]:
    """Take CPUs from the nodes in turn, so that no node carries more than its share."""
    taken: list[int] = []
    depth = 0
    while len(taken) < vcpus:
        taken += [node[depth] for node in nodes if depth < len(node)][: vcpus - len(taken)]
        depth += 1
    return tuple(sorted(taken))


def refuse_impossible(cpus: tuple[int, ...], vcpus: int, host: HostFacts) -> None:
    """Refuse a CPU list that vSphere would refuse or that means nothing. Raises PreflightBlocked."""
    known = {cpu for node in host.numa_nodes for cpu in node.cpus}
    unknown = sorted(set(cpus) - known)
    if unknown:
        raise PreflightBlocked(
            f"affinity names CPU {unknown[0]}, but {host.name} has logical CPUs 0 to {max(known)}.",
            fix="Correct the list, or use affinity: physical_cores.",
        )
    if len(set(cpus)) < vcpus:
        raise PreflightBlocked(
            f"affinity lists {len(set(cpus))} CPUs for {vcpus} vCPUs; vSphere wants at least one each.",
            fix="Lengthen the list, or use affinity: physical_cores.",
        )
