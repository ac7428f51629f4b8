"""Hosts and clusters of an RVTools export."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from vnuma.domain.vm.estate import EstateVm, Unseen, running_memory
from vnuma.domain.vm.facts import ClusterFacts, HostFacts, NumaNode, Release
from vnuma.estate.workbook import Row, Sheet

ASSUMED = (
    "RVTools exports no NUMA nodes: one per socket is assumed, which is wrong with sub-NUMA clustering "
    "or node interleaving"
)

_VERSION = re.compile(r"([0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?)(?:[^0-9]+([0-9]{5,12}))?")

MOST_CPUS = 4096
"""Four times the CPUs of the largest host or VM."""

# RVTools shows the policy's display name; rules use the short one.
_POLICIES = {
    "static": ("static", "high performance", "highperformance", "powerpolicy.static.name"),
    "dynamic": ("dynamic", "balanced", "powerpolicy.dynamic.name"),
    "low": ("low", "low power", "powerpolicy.low.name"),
    "custom": ("custom", "powerpolicy.custom.name"),
}


@dataclass(frozen=True)
class Hosts:
    """The hosts by vCenter and name, their clusters, and what could not be read."""

    by_name: Mapping[tuple[str, str], HostFacts]
    cluster_names: Mapping[str, tuple[str, str]]
    """Each host's cluster (vCenter, name), by the host's identifier."""
    drs: Mapping[tuple[str, str], bool | None]
    unread: Mapping[tuple[str, str], tuple[str, ...]]
    unseen: tuple[Unseen, ...]

    def find(self, server: str, name: str) -> HostFacts | None:
        """The host of that name at that vCenter. Where either sheet lacks the vCenter, the only one of that
        name.
        """
        found = self.by_name.get((server.lower(), name.lower()))
        if found:
            return found
        alike = self._alike.get(name.lower(), [])
        only = alike[0] if len(alike) == 1 else None
        return self.by_name[only] if only and not (server and only[0]) else None

    @cached_property
    def _alike(self) -> Mapping[str, list[tuple[str, str]]]:
        """The hosts of each name, at any vCenter."""
        found: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for key in self.by_name:
            found[key[1]].append(key)
        return found

    def with_memory(self, vms: Iterable[EstateVm]) -> Hosts:
        """The hosts, with the memory of the VMs that run on them."""
        running = running_memory(vms)
        named = {name: replace(host, powered_on_mb=running[host.moid]) for name, host in self.by_name.items()}
        return replace(self, by_name=named)

    def clusters(self) -> Iterator[ClusterFacts]:
        """Clusters with their hosts; a standalone host is a cluster of one."""
        members: dict[tuple[str, str], list[HostFacts]] = defaultdict(list)
        for host in self.by_name.values():
            cluster = self.cluster_names.get(host.moid)
            if cluster:
                members[cluster].append(host)
            else:
                yield ClusterFacts(host.moid, host.name, False, (host,))
        for (server, name), some in members.items():
            key = (server, name)
            moid = f"{server}/{name}"
            yield ClusterFacts(moid, name, self.drs.get(key), tuple(some), self.unread.get(key, ()))


def read_hosts(sheets: Mapping[str, Sheet]) -> Hosts:
    """Every host with processors, memory and release."""
    drs = {
        (row.text("server").lower(), row.text("name")): (row.truth("drs"), row.text("behavior") or None)
        for row in sheets["vCluster"]
    }
    named: dict[tuple[str, str], HostFacts] = {}
    clusters: dict[str, tuple[str, str]] = {}
    unread: dict[tuple[str, str], tuple[str, ...]] = {}
    unseen: list[Unseen] = []
    for row in sheets["vHost"]:
        server, name = row.text("server").lower(), row.text("host")
        cluster = (server, row.text("cluster"))
        enabled, behavior = drs.get(cluster, (None, None))
        host = _host(row, f"{server}/{name}", bool(enabled), behavior if enabled else None)
        if not isinstance(host, str) and "evc" in sheets["vHost"].columns:
            host = replace(host, evc_mode=row.text("evc"))
        if isinstance(host, str):
            unseen.append(Unseen("host", name, host))
            if cluster[1]:
                unread[cluster] = (*unread.get(cluster, ()), name)
            continue
        named[server, name.lower()] = host
        if cluster[1]:
            clusters[host.moid] = cluster
    if named:
        unseen.append(Unseen("host", "NUMA nodes", ASSUMED))
    return Hosts(named, clusters, {key: value[0] for key, value in drs.items()}, unread, tuple(unseen))


def _host(row: Row, moid: str, drs: bool, behavior: str | None) -> HostFacts | str:
    """The host, or why it cannot be read."""
    packages, memory = row.number("packages"), row.number("memory")
    cores = row.number("cores") or (packages or 0) * (row.number("per_package") or 0)
    version = _VERSION.search(row.text("version"))
    lacking = [
        what
        for what, there in (("sockets", packages), ("cores", cores), ("memory", memory), ("release", version))
        if not there
    ]
    if not (packages and cores and memory and version):
        return f"its row has no {', '.join(lacking)}"
    if not packages <= cores <= MOST_CPUS:
        return f"its row has {packages} sockets and {cores} cores, which no host can have"
    threads = cores * 2 if row.truth("ht") else cores
    size = threads // packages
    nodes = tuple(
        NumaNode(node, tuple(range(node * size, (node + 1) * size)), memory // packages)
        for node in range(packages)
    )
    return HostFacts(
        moid=moid,
        name=row.text("host"),
        release=Release(version[1], version[2] or ""),
        vendor=row.text("vendor"),
        model=row.text("model"),
        cpu_model=row.text("model_cpu"),
        bios=row.text("bios"),
        packages=packages,
        cores=cores,
        threads=threads,
        threads_used=row.truth("ht") or None,  # not active: off, or SCAv1
        memory_mb=memory,
        numa_nodes=nodes,
        mhz=row.number("speed") or 0,
        in_drs_cluster=drs,
        drs_default=behavior,
        numa_reported=False,
        node_memory_estimated=packages > 1,
        power_policy=_policy(row.text("policy")),
    )


def _policy(text: str) -> str | None:
    lowered = text.lower()
    return next((short for short, names in _POLICIES.items() if lowered in names), None)
