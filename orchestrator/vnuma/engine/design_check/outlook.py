"""What a planned VM's guest will see, by host, what it sees today, and what a host adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from vnuma.checks.evaluate import Evaluation, evaluate
from vnuma.checks.facts import shape_of
from vnuma.checks.result import Layout, Outlook
from vnuma.checks.rule import Rule
from vnuma.checks.subject import Subject
from vnuma.domain.topology.host_spec import parse_host
from vnuma.domain.topology.prediction import host_shape, predict
from vnuma.domain.topology.topology import partial_socket
from vnuma.domain.topology.vm_location import VmLocation
from vnuma.domain.vm.estate import Before, Estate, EstateVm
from vnuma.domain.vm.facts import HostFacts
from vnuma.engine.design_check.planned_host import on_hosts

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


_EXAMPLE = "2x16/256@8.0"


def added_by_host(
    design: Estate, rules: Sequence[Rule], subject_of: Callable[[Estate, EstateVm], Subject]
) -> int:
    """How many rules --host-nodes allows that no VM of this design allows without a host.

    They are counted with an example host; a few rules are of other releases than its own.
    """
    now = evaluate([subject_of(design, vm) for vm in design.vms], rules)
    there = on_hosts(design, VmLocation((parse_host(_EXAMPLE, "8.0", 2),)), None)
    then = evaluate([subject_of(there, vm) for vm in there.vms], rules)
    return len(_evaluated(then) - _evaluated(now))


def _evaluated(evaluations: Iterable[Evaluation]) -> set[str]:
    """Rules that could be evaluated on at least one VM."""
    return {
        rule.id
        for one in evaluations
        for rule, answer in zip(one.rules, one.answers, strict=True)
        if not isinstance(answer, str)
    }
