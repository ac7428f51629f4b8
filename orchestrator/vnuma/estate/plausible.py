"""Bounds for a snapshot's counts and releases, with which design rules calculate."""

from __future__ import annotations

import re
from collections.abc import Iterator

from vnuma.domain.vm.estate import Estate
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.estate.rvtools_hosts import MOST_CPUS

MOST_MB = 10**9
"""A petabyte."""

_MOST = {
    "numCPUs": MOST_CPUS,
    "memoryMB": MOST_MB,
    "numCoresPerSocket": MOST_CPUS,
    "coresPerNumaNode": MOST_CPUS,
}
_LEAST = {"numCPUs": 1, "memoryMB": 1}
_RELEASE = re.compile(r"[0-9]{1,3}(\.[0-9]{1,9})*", re.ASCII)


def implausible(estate: Estate) -> Iterator[str]:
    """Impossible values, each in a few words."""
    for vm in estate.vms:
        yield from implausible_vm(vm.facts)
    for host in estate.hosts.values():
        yield from _of_host(host)


def implausible_vm(vm: VmFacts) -> Iterator[str]:
    """A VM's impossible values, each in a few words."""
    for name, most in _MOST.items():
        value = vm.settings.get(name)
        least = _LEAST.get(name, 0)
        if name in vm.settings and not (value is None and not least) and not _is_count(value, least, most):
            yield f"{name} of VM {vm.name} is {str(value)[:20]!r}, not a number from {least} to {most:,}"
    for name in ("cpuAffinity", "memoryAffinity"):
        value = vm.settings.get(name)
        if isinstance(value, tuple) and not all(_is_count(one, 0, MOST_CPUS) for one in value):
            yield f"{name} of VM {vm.name} names a CPU or node that no host can have"


def _of_host(host: HostFacts) -> Iterator[str]:
    for name in ("packages", "cores", "threads"):
        if not _is_count(getattr(host, name), 1, MOST_CPUS):
            yield f"{name} of host {host.name} is {getattr(host, name)}, not a number from 1 to {MOST_CPUS:,}"
    if not _RELEASE.fullmatch(host.release.version):
        yield f"the release of host {host.name} is {host.release.version[:20]!r}, not a version such as 8.0.3"
    if not host.numa_nodes:
        yield f"host {host.name} has no NUMA node"
    for node in host.numa_nodes:
        cpus_exist = len(node.cpus) >= host.threads_per_core if host.cores > 0 else False
        if not cpus_exist or not all(_is_count(cpu, 0, MOST_CPUS) for cpu in node.cpus):
            yield f"NUMA node {node.id} of host {host.name} has no CPUs, or one that no host can have"


def _is_count(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
