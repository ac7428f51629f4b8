"""Where designed VMs are to run: what a design itself does not say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from vnuma.checks.subject import HARDWARE
from vnuma.domain.topology.release import hardware_version_of
from vnuma.domain.topology.vm_location import VmLocation
from vnuma.domain.vm.estate import HOST_DECIDES, Estate, EstateVm, Unseen
from vnuma.domain.vm.facts import ClusterFacts, HostFacts

_GIVEN = "hosts given"


def on_hosts(estate: Estate, there: VmLocation, cluster: str | None) -> Estate:
    """The designed VMs on these hosts: each on the one with the smallest NUMA nodes, which it has to fit.

    A hardware version that the design leaves to the host is that of the oldest release, and `unseen` says so.
    """
    hosts = _named_apart(there.hosts)
    smallest = _smallest(hosts)
    version = min(hardware_version_of(host.release.key) for host in hosts)
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
            return _on(vm, host, hardware_version_of(host.release.key)), cluster
    why = f"no host, model or cluster of the snapshot is called {vm.facts.host_name[:40]}"
    return replace(vm, absent={**vm.absent, "host": why}), None


def _smallest(hosts: Sequence[HostFacts]) -> HostFacts:
    return min(hosts, key=lambda host: (host.cores_per_node, host.node_memory_mb))


def _named_apart(hosts: Sequence[HostFacts]) -> tuple[HostFacts, ...]:
    """Hosts with an identifier each: two that were described alike are two hosts."""
    if len({host.moid for host in hosts}) == len(hosts):
        return tuple(hosts)
    return tuple(replace(host, moid=f"{number}:{host.moid}") for number, host in enumerate(hosts))


def _host_decides(vm: EstateVm) -> bool:
    """Whether the hardware version follows from the host, whichever that is."""
    return vm.hardware_of_host or vm.absent.get(HARDWARE) == HOST_DECIDES


def _on(vm: EstateVm, host: HostFacts, version: int) -> EstateVm:
    facts = replace(vm.facts, host_moid=host.moid, host_name=host.name)
    absent = {name: why for name, why in vm.absent.items() if name != "host"}
    if _host_decides(vm):
        absent.pop(HARDWARE, None)
        facts = replace(facts, hardware_version=version)
    return replace(vm, facts=facts, absent=absent)
