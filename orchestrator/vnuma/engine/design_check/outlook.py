"""What a planned VM's guest will see, on each host it may run on, and what it sees today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from vnuma.checks.facts import shape_of
from vnuma.checks.result import Layout, Outlook
from vnuma.domain.topology.prediction import host_shape, predict
from vnuma.domain.topology.topology import partial_socket
from vnuma.domain.vm.estate import Before, Estate, EstateVm
from vnuma.domain.vm.facts import HostFacts

DESIGNS = frozenset({"terraform", "ansible", "table", "vmx", "ovf"})
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
    sure = True
    for host in hosts:
        seen = predict(host_shape(host), vm.settings, vm.hardware_version, vm.unknown)
        names.setdefault(seen.node_sizes, []).append(host.name)
        sure = sure and seen.confidence == "high"
    layouts = tuple(Layout(sizes, tuple(on)) for sizes, on in names.items())
    return Outlook(shape_of(vm.settings), layouts, sure)
