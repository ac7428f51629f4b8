"""Where designed VMs are to run: what a design itself does not say."""

from __future__ import annotations

from collections.abc import Sequence
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
    smallest = min(hosts, key=lambda host: (host.cores_per_node, host.node_memory_mb))
    version = min(hardware_version_of(host.release.key) for host in hosts)
    vms = tuple(_on(vm, smallest, version) for vm in estate.vms)
    name = cluster or _GIVEN
    notes = []
    if any(vm.absent.get(HARDWARE) == HOST_DECIDES for vm in estate.vms):
        notes.append(Unseen("host", "hardware version", f"{HOST_DECIDES}: {version} is assumed"))
    return replace(
        estate,
        vms=vms,
        clusters=(ClusterFacts(name, name, None, hosts, there.unread),),
        unseen=(*estate.unseen, *notes),
        simulated=there.simulated,
    )


def _named_apart(hosts: Sequence[HostFacts]) -> tuple[HostFacts, ...]:
    """Hosts with an identifier each: two that were described alike are two hosts."""
    if len({host.moid for host in hosts}) == len(hosts):
        return tuple(hosts)
    return tuple(replace(host, moid=f"{number}:{host.moid}") for number, host in enumerate(hosts))


def _on(vm: EstateVm, host: HostFacts, version: int) -> EstateVm:
    facts = replace(vm.facts, host_moid=host.moid, host_name=host.name)
    absent = {name: why for name, why in vm.absent.items() if name != "host"}
    if absent.get(HARDWARE) == HOST_DECIDES:
        del absent[HARDWARE]
        facts = replace(facts, hardware_version=version)
    return replace(vm, facts=facts, absent=absent)
