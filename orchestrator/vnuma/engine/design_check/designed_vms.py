"""Designed VMs: on which hosts they are to run, what their guests will see there, and what they see today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from vnuma.checks.evaluate import evaluate
from vnuma.checks.facts import HARDWARE, HOST_OPTIONS, Subject, shape_of
from vnuma.checks.result import Outlook
from vnuma.checks.rule import Rule
from vnuma.domain.topology.prediction import host_shape, predict
from vnuma.domain.topology.release import hardware_version_of, newest_hardware
from vnuma.domain.topology.topology import partial_socket
from vnuma.domain.topology.vm_location import VmLocation, parse_host
from vnuma.domain.vm.estate import HOST_DECIDES, Before, Estate, EstateVm, NotShown, Unseen
from vnuma.domain.vm.facts import ClusterFacts, HostFacts

_GIVEN = "hosts given"


def on_hosts(estate: Estate, there: VmLocation, cluster: str | None) -> Estate:
    """The designed VMs on these hosts: each on the one with the smallest NUMA nodes, which it has to fit.

    A hardware version that the design leaves to the host is that of the oldest release, and `unseen` says so.
    """
    hosts = _named_apart(there.hosts)
    smallest = _smallest(hosts)
    version = min(hardware_version_of(host.release.version) for host in hosts)
    vms = tuple(_on(vm, smallest, version) for vm in estate.vms)
    name = cluster or _GIVEN
    notes = []
    named = sorted({vm.facts.host_name for vm in estate.vms if vm.facts.host_moid})
    if named:
        why = f"the hosts given count, not those of the design ({', '.join(named[:3])})"
        notes.append(Unseen("host", "design", why))
    if any(_host_decides(vm) for vm in estate.vms):
        notes.append(Unseen("host", "hardware version", f"{HOST_DECIDES}: {version} is assumed"))
    return replace(
        estate,
        vms=vms,
        clusters=(ClusterFacts(name, name, None, hosts, there.unread),),
        unseen=(*estate.unseen, *notes),
        simulated=there.simulated,
    )


def on_named_hosts(estate: Estate, known: Iterable[Estate]) -> Estate:
    """The designed VMs on the hosts that their design names: a host, a model or a cluster of other estates.

    A VM without such a name, or with one that nothing there has, stays without a host.
    """
    there = tuple(known)
    clusters = [cluster for one in there for cluster in one.clusters]
    placed = [_placed(vm, clusters) for vm in estate.vms]
    used = {cluster.moid: cluster for _, cluster in placed if cluster}
    return replace(
        estate,
        vms=tuple(vm for vm, _ in placed),
        clusters=(*estate.clusters, *used.values()),
        simulated=next((one.simulated for one in there if one.simulated), None) if used else None,
    )


def _placed(vm: EstateVm, clusters: Sequence[ClusterFacts]) -> tuple[EstateVm, ClusterFacts | None]:
    name = vm.facts.host_name.lower()
    if vm.facts.host_moid or not name:
        return vm, None
    for cluster in clusters:
        named = [host for host in cluster.hosts if name in {host.name.lower(), host.model.lower()}]
        hosts = named or (cluster.hosts if cluster.name.lower() == name else ())
        if hosts:
            host = _smallest(hosts)
            return _on(vm, host, hardware_version_of(host.release.version)), cluster
    why = f"no host, model or cluster of the snapshot is called {vm.facts.host_name[:40]}"
    return replace(vm, absent={**vm.absent, "host": why}), None


def _smallest(hosts: Sequence[HostFacts]) -> HostFacts:
    return min(hosts, key=lambda host: (host.cores_per_node, host.node_memory_mb))


def _named_apart(hosts: Sequence[HostFacts]) -> tuple[HostFacts, ...]:
    """Hosts with an identifier each: two that were described alike are two hosts."""
    if len({host.moid for host in hosts}) == len(hosts):
        return tuple(hosts)
    return tuple(replace(host, moid=f"{number}:{host.moid}") for number, host in enumerate(hosts))


_DESCRIPTION = NotShown("the description of the host")


def subject_in(estate: Estate, vm: EstateVm) -> Subject:
    """A VM with its host, cluster and Windows, as far as its estate has them."""
    host = estate.hosts.get(vm.facts.host_moid)
    return Subject(
        vm=vm.facts,
        host=host,
        cluster=estate.cluster_of.get(vm.facts.host_moid),
        guest=vm.guest,
        waits=vm.waits,
        absent={**vm.absent, HOST_OPTIONS: _DESCRIPTION} if host and host.described else vm.absent,
        planned_sql=vm.sql,
    )


def _host_decides(vm: EstateVm) -> bool:
    """Whether the hardware version follows from the host, whichever that is."""
    return vm.hardware_of_host or vm.absent.get(HARDWARE) == HOST_DECIDES


def _on(vm: EstateVm, host: HostFacts, version: int) -> EstateVm:
    facts = replace(vm.facts, host_moid=host.moid, host_name=host.name)
    if vm.offered:
        newest = newest_hardware(host.release.version) or max(vm.offered)
        runs = [one for one in vm.offered if one <= newest]
        facts = replace(facts, hardware_version=max(runs, default=min(vm.offered)))
    absent = {name: why for name, why in vm.absent.items() if name != "host"}
    if _host_decides(vm):
        absent.pop(HARDWARE, None)
        facts = replace(facts, hardware_version=version)
    return replace(vm, facts=facts, absent=absent)


DESIGNS = frozenset({"terraform", "ansible", "table", "vmx", "ovf", "api"})
"""Kinds of sources that plan VMs."""

Present = Mapping[str, tuple[EstateVm, HostFacts]]
"""VMs that exist, each with its host, by a name that only one of them has."""


def present_vms(estates: Iterable[Estate]) -> Present:
    """The VMs of a site by name; of a name that several have, none."""
    found = [(vm, host) for one in estates for vm in one.vms if (host := one.hosts.get(vm.facts.host_moid))]
    names = Counter(vm.facts.name for vm, _ in found)
    return {vm.facts.name: (vm, host) for vm, host in found if names[vm.facts.name] == 1}


def planned(estate: Estate, vm: EstateVm) -> Outlook | None:
    """What a power-on will give; None where hosts or vCPUs are not known, or the VM is not a plan."""
    if estate.kind not in DESIGNS or not isinstance(vm.facts.settings.get("numCPUs"), int):
        return None
    cluster = estate.cluster_of.get(vm.facts.host_moid)
    return _outlook(_as_before(vm), cluster.hosts) if cluster else None


def today(estate: Estate, vm: EstateVm, present: Present) -> Outlook | None:
    """What the VM of that name has now: by the site, else by the plan's prior state on the same hosts."""
    if vm.facts.name in present:
        there, host = present[vm.facts.name]
        return _outlook(_as_before(there), (host,))
    cluster = estate.cluster_of.get(vm.facts.host_moid)
    return _outlook(vm.before, cluster.hosts) if vm.before and cluster else None


def _as_before(vm: EstateVm) -> Before:
    return Before(vm.facts.settings, vm.facts.hardware_version, tuple(vm.absent))


def _outlook(vm: Before, hosts: Sequence[HostFacts]) -> Outlook | None:
    if not isinstance(vm.settings.get("numCPUs"), int) or partial_socket(vm.settings):
        return None
    names: dict[tuple[int, ...], list[str]] = {}
    doubts = ["the hardware version is assumed"] if HARDWARE in vm.unknown else []
    for host in hosts:
        hardware = vm.hardware_version or hardware_version_of(host.release.version)
        seen = predict(host_shape(host), vm.settings, hardware, vm.unknown)
        names.setdefault(seen.node_sizes, []).append(host.name)
        if seen.confidence == "low":
            doubts += seen.doubts or (seen.because,)
    layouts = {sizes: tuple(on) for sizes, on in names.items()}
    return Outlook(shape_of(vm.settings), layouts, "; ".join(dict.fromkeys(doubts)))


_EXAMPLE = "2x16/256@8.0"


def added_by_host(
    design: Estate, rules: Sequence[Rule], subject_of: Callable[[Estate, EstateVm], Subject]
) -> int:
    """How many rules --host-nodes allows that no VM of this design allows without a host.

    They are counted with an example host; a few rules are of other releases than its own.
    """
    now = list(evaluate([subject_of(design, vm) for vm in design.vms], rules))
    there = on_hosts(design, VmLocation((parse_host(_EXAMPLE, "8.0", 2),)), None)
    then = list(evaluate([subject_of(there, vm) for vm in there.vms], rules))
    return sum(
        any(rule.id not in one.not_evaluated for one in then)
        and all(rule.id in one.not_evaluated for one in now)
        for rule in rules
    )
