"""Recommended topologies for a VM of a given size, those to avoid, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from math import ceil

from vnuma.checks.evaluate import evaluate
from vnuma.checks.facts import Subject
from vnuma.checks.rule import Fix, Severity
from vnuma.checks.rules.catalogue import find_rule
from vnuma.checks.rules.shape_questions import SMALLEST_NODE, unmatched_sockets
from vnuma.checks.rules.sqlserver import maxdop_guidance
from vnuma.domain.topology import release as esxi
from vnuma.domain.topology.forecast import Forecast, PlannedGuest, forecast_on
from vnuma.domain.topology.licence import SqlLimit, most_in_a_node, sql_limit
from vnuma.domain.topology.prediction import host_shape, lie_evenly, predict
from vnuma.domain.topology.topology import Topology, topologies
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import TYPED, Power, Settings, Value
from vnuma.words.plain_text import counted, gigabytes

_NAMED = 3
"""Hosts that a sentence names."""


class Worth(IntEnum):
    """How good a candidate is; lower is better."""

    HAVING = 0
    TESTING = 1
    AVOIDING = 2


HEADINGS = {Worth.HAVING: "Worth having", Worth.TESTING: "Worth testing", Worth.AVOIDING: "To avoid"}


@dataclass(frozen=True)
class Candidate:
    """One topology: what the guest gets, its advantages and disadvantages."""

    topology: Topology
    worth: Worth
    forecasts: tuple[Forecast, ...]
    reasons: tuple[str, ...]
    settings: Settings
    """Settings besides cores per socket that make its nodes its sockets; empty: none needed."""

    @property
    def nodes(self) -> int:
        """Number of vNUMA nodes on the first host."""
        return self.forecasts[0].prediction.vnuma_nodes

    def fix(self, vm: VmFacts | None) -> Fix:
        """How to get this shape from the VM as it is; without a VM, from any."""
        shape = self.topology
        settings: Settings = {
            "numCPUs": shape.vcpus,
            "numCoresPerSocket": shape.cores_per_socket,
            **self.settings,
        }
        nodes = {"vnuma_nodes": self.nodes} if self.nodes == shape.sockets else {}
        arm = {"topology": str(shape), "vcpus": shape.vcpus, **nodes}
        current = vm.settings if vm else None
        return Fix(f"Use {shape}.", arm=arm, settings=settings, current=current)


@dataclass(frozen=True)
class Advice:
    """Candidates, best first; `nodes_needed` is the fewest host nodes that fit vCPUs and memory."""

    candidates: tuple[Candidate, ...]
    nodes_needed: int
    other_vcpus: tuple[int, ...]
    """Nearby vCPU counts that the nodes divide evenly; empty if the requested one is."""
    unused: str = ""
    """Why some CPUs stay unused in every shape; empty if none do."""
    used: int = 0
    """The most vCPUs that any shape uses."""
    limit: SqlLimit = field(default_factory=lambda: SqlLimit("Developer or Evaluation"))
    """The edition's limits."""
    too_small: Mapping[str, str] = field(default_factory=dict)
    """Hosts that are smaller than the VM, with what they have: `32 cores and 192 GB`."""
    runs_nowhere: bool = False
    """Whether every host has fewer logical CPUs than the VM has vCPUs, or less memory than the VM."""
    only_memory: bool = False
    """Whether every host has enough logical CPUs: what it lacks is memory, which ESXi can swap."""
    many_groups: bool = False
    """Whether Windows makes several processor groups of the vCPUs (W01)."""
    not_allowed: str = ""
    """Why the hardware version does not allow this size; empty if it does."""
    largest: tuple[int, int] | None = None
    """If no shape fits: vCPUs and MB of the largest VM, no larger than this, of which one does."""

    def worth(self, *kinds: Worth) -> tuple[Candidate, ...]:
        """The candidates of these kinds, best first."""
        return tuple(one for one in self.candidates if one.worth in kinds)


def advise(
    vcpus: int, memory_mb: int, hosts: Sequence[HostFacts], hardware: int, guest: PlannedGuest
) -> Advice:
    """Judge every topology of these vCPUs on every host. Hosts whose memory is 0 are judged by cores."""
    found = _judged(vcpus, memory_mb, hosts, hardware, guest)
    if found.worth(Worth.HAVING, Worth.TESTING):
        return found
    return replace(found, largest=_largest(vcpus, memory_mb, hosts, hardware, guest))


def _largest(
    vcpus: int, memory_mb: int, hosts: Sequence[HostFacts], hardware: int, guest: PlannedGuest
) -> tuple[int, int] | None:
    """The size with the most vCPUs, then the most whole nodes of memory, that has a shape worth testing."""
    most, known = min(host.cores for host in hosts), [host for host in hosts if host.local_memory_mb]
    node = min((host.local_memory_mb for host in known), default=0)
    whole = min((len(host.numa_nodes) for host in known), default=0) * node
    sizes = {
        min(memory_mb, whole or memory_mb),
        *(size for size in range(node, whole, node or 1) if size < memory_mb),
    }
    for count in range(min(vcpus, most), 0, -1):
        for size in sorted(sizes, reverse=True):
            if esxi.beyond_hardware(count, size, hardware):
                continue
            if _judged(count, size, hosts, hardware, guest).worth(Worth.HAVING, Worth.TESTING):
                return count, size
    return None


def _judged(
    vcpus: int, memory_mb: int, hosts: Sequence[HostFacts], hardware: int, guest: PlannedGuest
) -> Advice:
    by_host = {host.name: min(_nodes_needed(vcpus, memory_mb, host), len(host.numa_nodes)) for host in hosts}
    needed = max(by_host.values())
    seen = [_seen(shape, memory_mb, hosts, hardware, guest, needed) for shape in topologies(vcpus)]
    most = max(one.usable_cores for _, _, forecasts in seen for one in forecasts)
    of_host = {host.name: len(host.numa_nodes) for host in hosts}
    best = _fewest(vcpus, by_host, of_host, guest.most_in_a_node)
    wanted = GoodShape(by_host, of_host, best, most, guest)
    found = [_candidate(vm, extra, forecasts, hosts, wanted) for vm, extra, forecasts in seen]
    low, high = vcpus - vcpus % needed, vcpus + needed - vcpus % needed
    return Advice(
        tuple(sorted(found, key=lambda one: _rank(one, wanted.nodes))),
        needed,
        tuple(count for count in (low, high) if count) if vcpus % best else (),
        f"{most} of {vcpus}: {found[0].forecasts[0].limited_by.because}" if most < vcpus else "",
        most,
        sql_limit(guest.sql_edition, guest.sql_major),
        {host.name: has for host in hosts if (has := _has_only(vcpus, memory_mb, host))},
        all(vcpus > host.threads or 0 < host.largest_vm_mb < memory_mb for host in hosts),
        all(vcpus <= host.threads for host in hosts),
        vcpus >= guest.many_groups_from,
        esxi.beyond_hardware(vcpus, memory_mb, hardware),
    )


def sentences(advice: Advice, vcpus: int, memory_mb: int, hosts: str, year: int) -> Iterator[str]:
    """What all shapes have in common: the nodes needed on `hosts`, and what SQL Server of that year uses."""
    nodes, small = advice.nodes_needed, advice.too_small
    needs = "fits one host NUMA node" if nodes == 1 else f"needs {nodes} host NUMA nodes"
    vm = f"A VM of {vcpus} vCPUs and {gigabytes(memory_mb)}"
    if advice.not_allowed:
        yield f"{vm} is not possible: {advice.not_allowed}. Choose a smaller VM or a newer hardware version."
    elif advice.runs_nowhere:
        lacks = (
            f"does not fit {_too_small(small)}, without swapping: with all its memory reserved it does not "
            "power on"
        )
        cannot = f"cannot run on {_too_small(small)}"
        yield f"{vm} {lacks if advice.only_memory else cannot}. Choose a smaller VM or a larger host."
    elif small:
        yield f"{vm} is larger than {_too_small(small)}."
    else:
        yield f"{vm} {needs} on {hosts}."
    if advice.largest:
        most, size_mb = advice.largest
        yield f"No shape fits. The largest VM with one that does: {most} vCPUs and {gigabytes(size_mb)}."
    if advice.many_groups:
        yield (
            f"With {vcpus} vCPUs this Windows makes several processor groups (W01), of at most 64 CPUs each."
        )
    limit = advice.limit
    if not limit.limited:
        return
    pool = limit.buffer_pool_mb
    memory = f", and {gigabytes(pool)} of buffer pool" if pool and pool < memory_mb else ""
    if advice.used < vcpus:
        yield (
            f"SQL Server {year} {limit.edition} leaves {vcpus - advice.used} of them unused in every shape: "
            f"it uses {limit}{memory}. With {advice.used} vCPUs none is unused."
        )
    else:
        yield f"SQL Server {year} {limit.edition} uses at most {limit}{memory}."


def _too_small(hosts: Mapping[str, str]) -> str:
    """`esx1, which has 32 cores, and esx2, which has 192 GB`."""
    named = [f"{name}, which has {has}" for name, has in hosts.items()][:_NAMED]
    more = [f"{len(hosts) - _NAMED} more hosts"] if len(hosts) > _NAMED else []
    return ", and ".join([*named, *more])


def planned_vm(settings: Settings, hardware: int) -> VmFacts:
    """A VM that does not exist yet, as the rules read one."""
    defaults = {name: spec.unset for name, spec in TYPED.items()}
    return VmFacts(
        moid="",
        name="planned",
        path="",
        vcenter_uuid="",
        instance_uuid="",
        hardware_version=hardware,
        guest_id="",
        guest_full_name="",
        power=Power.OFF,
        host_moid="",
        host_name="",
        tools_running=False,
        change_version="",
        settings={**defaults, **settings},
    )


def _nodes_needed(vcpus: int, memory_mb: int, host: HostFacts) -> int:
    by_memory = ceil(memory_mb / host.local_memory_mb) if host.local_memory_mb else 1
    return max(ceil(vcpus / host.cores_per_node), by_memory)


def _has_only(vcpus: int, memory_mb: int, host: HostFacts) -> str:
    """What the host has, where the VM has more; empty if it has enough.

    A VM cannot have more vCPUs than the host has logical CPUs ("Virtual CPU Limitations", vSphere Virtual
    Machine Administration).
    """
    has = []
    if vcpus > host.threads:
        has.append(f"{host.threads} logical CPUs")
    elif vcpus > host.cores:
        has.append(f"{host.cores} cores")
    if 0 < host.largest_vm_mb < memory_mb:
        has.append(gigabytes(host.memory_mb))
    return " and ".join(has)


def _fewest(vcpus: int, fewest: Mapping[str, int], every: Mapping[str, int], most: int) -> int:
    """The fewest equal nodes of at most `most` vCPUs that lie evenly on every host.

    If none does, the fewest host nodes in multiples, unequally filled.
    """
    needed = max(fewest.values())
    for count in range(needed, vcpus + 1):
        large = count == needed or vcpus // count >= SMALLEST_NODE
        fits = vcpus % count == 0 and vcpus // count <= most
        if large and fits and all(lie_evenly(count, fewest[name], every[name]) for name in every):
            return count
    return next(count for count in range(needed, vcpus + needed, needed) if ceil(vcpus / count) <= most)


def _seen(
    shape: Topology,
    memory_mb: int,
    hosts: Sequence[HostFacts],
    hardware: int,
    guest: PlannedGuest,
    needed: int,
) -> tuple[VmFacts, Settings, tuple[Forecast, ...]]:
    """A VM of that shape, the settings that make its nodes, and the result on each host."""
    settings: dict[str, Value] = {
        "numCPUs": shape.vcpus,
        "numCoresPerSocket": shape.cores_per_socket,
        "memoryMB": memory_mb,
    }
    extra = _node_per_socket(shape, settings, hosts, hardware) if shape.sockets >= needed else {}
    vm = planned_vm({**settings, **extra}, hardware)
    return vm, extra, tuple(forecast_on(vm.settings, hardware, hosts, guest))


def _candidate(
    vm: VmFacts,
    extra: Settings,
    forecasts: tuple[Forecast, ...],
    hosts: Sequence[HostFacts],
    wanted: GoodShape,
) -> Candidate:
    first = forecasts[0]
    shape = first.topology
    against = [*broken_rules(vm, hosts), *too_large(vm, hosts)]
    against += dict.fromkeys(reason for one in forecasts for reason in disadvantages(one, wanted))
    counts = sorted({one.prediction.vnuma_nodes for one in forecasts})
    if len(counts) > 1:
        against.append(f"T19: {' or '.join(map(str, counts))} nodes, depending on the host of the power-on")
    if against:
        return Candidate(shape, Worth.AVOIDING, forecasts, tuple(against), extra)
    matched = first.prediction.vnuma_nodes == wanted.nodes == shape.sockets
    reasons = (*advantages(shape, first, wanted), parallelism(first, wanted.guest.sql_major))
    return Candidate(shape, Worth.HAVING if matched else Worth.TESTING, forecasts, reasons, extra)


def _node_per_socket(
    shape: Topology, settings: Settings, hosts: Sequence[HostFacts], hardware: int
) -> dict[str, Value]:
    """The settings that make each socket a vNUMA node, if the release would not."""
    if shape.cores_per_socket == 1:
        return {}
    plain = [predict(host_shape(host), settings, hardware) for host in hosts]
    if all(seen.vnuma_nodes == shape.sockets and seen.confidence == "high" for seen in plain):
        return {}
    extra = _following(shape, hosts, hardware)
    seen = [predict(host_shape(host), {**settings, **extra}, hardware) for host in hosts]
    return extra if all(one.vnuma_nodes == shape.sockets for one in seen) else {}


def _following(shape: Topology, hosts: Sequence[HostFacts], hardware: int) -> dict[str, Value]:
    """The settings in these releases that make a socket a node; few vCPUs need numa.vcpu.min too."""
    releases = {host.release.key for host in hosts}
    if min(releases) >= esxi.VIRTUAL_NUMA_SINCE and hardware >= esxi.VIRTUAL_NUMA_HARDWARE:
        return {"coresPerNumaNode": shape.cores_per_socket}
    few: dict[str, Value] = (
        {esxi.MINIMUM: str(shape.vcpus)} if shape.vcpus < esxi.DEFAULT_MINIMUM_VCPUS else {}
    )
    return {esxi.FOLLOW: "1", **few} if max(releases) >= esxi.DECOUPLED_SINCE else few


def _rank(one: Candidate, wanted: int) -> tuple[int, int, int, int]:
    """Sort key, best first: worth, then fewest surplus nodes, then fewest sockets."""
    return one.worth, abs(one.nodes - wanted), len(one.reasons), one.topology.sockets


# Rules that a shape may violate by itself, before anything is deployed.
SHAPE_RULES = tuple(find_rule(rule) for rule in ("T05", "T06", "T08", "T09", "T10", "T13", "T21", "R08"))


@dataclass(frozen=True)
class GoodShape:
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
        words = f"does not fit: {gigabytes(wanted)} on a host of {gigabytes(least)}"
        yield _where(words, list(small), hosts)


def _where(words: str, names: Sequence[str], hosts: Sequence[HostFacts]) -> str:
    return words if len(names) == len(hosts) else f"{words} ({', '.join(names)})"


def disadvantages(one: Forecast, wanted: GoodShape) -> Iterator[str]:
    """All other disadvantages of a shape, on one host or alike on several."""
    host_nodes = {(wanted.by_host[name], wanted.of_host[name]) for name in one.hosts}
    needed = max(fewest for fewest, _ in host_nodes)
    shape, nodes = one.topology, one.prediction.vnuma_nodes
    smallest = min(one.prediction.node_sizes)
    if one.remote:
        yield f"{one.remote} of its memory is remote"
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
        yield f"nodes of {counted(smallest, 'vCPU')}: MAXDOP within a node limits a query to {smallest}"
    if unmatched_sockets(shape.sockets, shape.vcpus, nodes, needed):
        sockets = "1 socket does" if shape.sockets == 1 else f"{shape.sockets} sockets do"
        yield f"{sockets} not match {_nodes(nodes)}"


def _nodes(count: int) -> str:
    return counted(count, "vNUMA node")


def advantages(shape: Topology, seen: Forecast, wanted: GoodShape) -> Iterator[str]:
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
        yield f"{counted(shape.sockets, 'socket')} for {counted(nodes, 'node')}: they do not match"
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
    online = seen.sql_nodes_online
    most = maxdop_guidance(online, seen.usable_cores, sql_major)
    used = f" ({online} online)" if online < len(seen.sql_node_sizes) else ""
    nodes = f"{seen.prediction.vnuma_nodes} memory and {counted(len(seen.sql_node_sizes), 'CPU node')}{used}"
    return f"SQL Server: {nodes}, MAXDOP up to {most}"


ARMS = 4


def study_text(advice: Advice, *, vm: str, name: str, memory_mb: int) -> str:
    """A study of the best candidates as YAML, with the reasons as comments. Raises ValueError for fewer than
    two.
    """
    arms = arms_of(advice)
    if len(arms) < 2:
        raise ValueError(
            "only one topology with this number of vCPUs can run on every host, so there is nothing to "
            "compare"
        )
    shape = arms[0].topology
    listed = "\n".join(f"  # {arm.reasons[0]}\n  - {_arm(arm)}" for arm in arms)
    return f"""\
# Topologies worth comparing for {shape.vcpus} vCPUs and {memory_mb // 1024} GB, best guess first.
# Written by vnuma advise. The VM should be a test clone.
name: {name}
title: Topologies of a {shape.vcpus}-vCPU SQL Server VM
vm: {vm}  # the name of a host in the inventory
vcpus: {shape.vcpus}
reference: {shape}
arms:
{listed}
all_arms:
  affinity: none  # ESXi's NUMA scheduler places the VM
  memory_mb: {memory_mb}
  memory_reservation: locked
design:
  stop: decided  # an arm leaves when its verdict is certain
  max_blocks: 12
  seed: 1
workload:
  name: cross_join
  sizes: [1000, 2000, 3000]
  forms: [server, client]
"""


def _arm(arm: Candidate) -> str:
    """Its nodes are stated where they are its sockets; otherwise what the release predicts counts."""
    if arm.nodes != arm.topology.sockets:
        return str(arm.topology)
    return f"{{topology: {arm.topology}, vnuma_nodes: {arm.nodes}}}"


def arms_of(advice: Advice) -> tuple[Candidate, ...]:
    """The candidates to test: the good ones; with fewer than two, also the least bad that can run."""
    good = advice.worth(Worth.HAVING, Worth.TESTING)[:ARMS]
    spare = [
        one
        for one in advice.worth(Worth.AVOIDING)
        if one.topology.cores_per_socket > 1 and all(map(_comparable, one.forecasts))
    ]
    return good if len(good) > 1 else (*good, *spare)[:2]


def _comparable(seen: Forecast) -> bool:
    """Whether it powers on, with equal nodes and the stated vCPUs."""
    even = len(set(seen.prediction.node_sizes)) == 1
    return even and not seen.impossible and seen.usable_cores == seen.topology.vcpus
