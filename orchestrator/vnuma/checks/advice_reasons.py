"""What speaks for a topology, and what against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vnuma.checks.evaluate import evaluate
from vnuma.checks.finding import Severity
from vnuma.checks.rules.catalogue import find_rule
from vnuma.checks.rules.shape_questions import SMALLEST_NODE, unmatched_sockets
from vnuma.checks.rules.sqlserver import maxdop_guidance
from vnuma.checks.subject import Subject
from vnuma.domain.topology.forecast import Forecast, PlannedGuest
from vnuma.domain.topology.layout import lie_evenly
from vnuma.domain.topology.licence import most_in_a_node
from vnuma.domain.topology.topology import Topology
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.words.plain_text import counted

# Rules that a shape may violate by itself, before anything is deployed.
SHAPE_RULES = tuple(find_rule(rule) for rule in ("T05", "T06", "T08", "T09", "T10", "T13", "T21", "R08"))


@dataclass(frozen=True)
class Wanted:
    """A good shape has the fewest vNUMA nodes, and uses as many cores as any shape.

    `by_host` is the fewest host nodes that fit the VM, `of_host` all nodes, both by host.
    """

    by_host: Mapping[str, int]
    of_host: Mapping[str, int]
    nodes: int
    cores: int
    guest: PlannedGuest

    @property
    def host_nodes(self) -> int:
        """The fewest host nodes that fit it on every host."""
        return max(self.by_host.values())


def broken_rules(vm: VmFacts, hosts: Sequence[HostFacts]) -> Iterator[str]:
    """Rules that the shape violates, each with its hosts unless it is all of them."""
    tripped: dict[str, list[str]] = {}
    for host in hosts:
        (evaluation,) = evaluate([Subject(vm=vm, host=host)], SHAPE_RULES)
        for found in evaluation.failures:
            if found.severity is not Severity.INFO:
                words = f"{found.rule}: {found.title[0].lower()}{found.title[1:]}"
                tripped.setdefault(words, []).append(host.name)
    for words, names in tripped.items():
        yield _where(words, names, hosts)


def too_large(vm: VmFacts, hosts: Sequence[HostFacts]) -> Iterator[str]:
    """Hosts with less memory than the VM: it fits in no shape."""
    wanted = vm.settings.get("memoryMB")
    if not isinstance(wanted, int):
        return
    small = {host.name: host.memory_mb for host in hosts if 0 < host.largest_vm_mb < wanted}
    if small:
        least = min(small.values())
        words = f"does not fit: {wanted / 1024:.4g} GB on a host of {least / 1024:.4g} GB"
        yield _where(words, list(small), hosts)


def _where(words: str, names: Sequence[str], hosts: Sequence[HostFacts]) -> str:
    return words if len(names) == len(hosts) else f"{words} ({', '.join(names)})"


def disadvantages(one: Forecast, wanted: Wanted) -> Iterator[str]:
    """All other disadvantages of a shape, on one host or alike on several."""
    host_nodes = {(wanted.by_host[name], wanted.of_host[name]) for name in one.hosts}
    needed = max(fewest for fewest, _ in host_nodes)
    shape, nodes = one.topology, one.prediction.vnuma_nodes
    smallest = min(one.prediction.node_sizes)
    if one.remote:
        yield f"{one.remote} of its memory are remote"
    if one.usable_cores < wanted.cores:
        are = "is" if one.usable_cores == 1 else "are"
        yield f"{one.usable_cores} of {shape.vcpus} CPUs {are} used: {one.limited_by.because}"
    yield from filter(None, (one.not_started, one.split))
    if nodes < needed:
        yield f"{_nodes(nodes)} for a VM that needs {needed} host nodes"
    for fewest, every in sorted(host_nodes):
        if nodes > fewest and not lie_evenly(nodes, fewest, every):
            yield f"{_nodes(nodes)} are spread unevenly over {every} host nodes"
    if nodes > needed and smallest < SMALLEST_NODE:
        yield f"nodes of {smallest} vCPUs: MAXDOP within a node limits a query to {smallest}"
    if unmatched_sockets(shape.sockets, shape.vcpus, nodes, needed):
        sockets = "1 socket does" if shape.sockets == 1 else f"{shape.sockets} sockets do"
        yield f"{sockets} not match {_nodes(nodes)}"


def _nodes(count: int) -> str:
    return counted(count, "vNUMA node")


def advantages(shape: Topology, seen: Forecast, wanted: Wanted) -> Iterator[str]:
    """How its nodes and sockets match the VM, and how sure that is."""
    nodes, needed = seen.prediction.vnuma_nodes, wanted.host_nodes
    if nodes == needed == 1:
        yield _fits_one_node(seen)
    elif nodes == wanted.nodes == shape.sockets:
        most = wanted.guest.most_in_a_node
        small = seen.topology.vcpus <= most * needed
        limit = "" if small else f", of at most {most} vCPUs{_why_so_small(wanted.guest)}"
        evenly = " evenly" if small and nodes > needed else ""
        yield (
            f"the smallest number of nodes that holds it{evenly}{limit}, each with {shape.cores_per_socket} "
            "vCPUs and one socket"
        )
    elif nodes > wanted.nodes:
        yield (
            f"{nodes} nodes where {wanted.nodes} would be enough: smaller nodes, more remote access; "
            "measure it"
        )
    else:
        yield f"{nodes} nodes; {shape.sockets} sockets do not match them"
    if seen.memory_doubt:
        yield seen.memory_doubt
    if seen.prediction.confidence == "low":
        yield f"low confidence: {seen.prediction.because}"


def _why_so_small(guest: PlannedGuest) -> str:
    if most_in_a_node(guest.sql_major) == guest.most_in_a_node:
        return " for SQL Server to start (S22)"
    return f", which {guest.windows} does not split (W01)"


def _fits_one_node(seen: Forecast) -> str:
    if seen.remote_mb is None:
        return "the vCPUs fit one host NUMA node, whose memory is not known"
    return f"vCPUs and memory fit one host NUMA node{'' if seen.memory_doubt else ': all memory is local'}"


def parallelism(seen: Forecast, sql_major: int) -> str:
    """SQL Server's nodes and its highest MAXDOP, for the CPUs that it uses."""
    online = seen.sql_cpu_nodes_online
    most = maxdop_guidance(online, seen.usable_cores, sql_major)
    used = f" ({online} online)" if online < seen.sql_cpu_nodes else ""
    nodes = f"{seen.prediction.vnuma_nodes} memory and {counted(seen.sql_cpu_nodes, 'CPU node')}{used}"
    return f"SQL Server: {nodes}, MAXDOP up to {most}"
