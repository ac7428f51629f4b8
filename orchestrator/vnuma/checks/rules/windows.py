"""Rules on Windows in the guest: processor groups, boot options, socket limits."""

from __future__ import annotations

from math import ceil

from vnuma.checks.facts import Facts, Unknown, known
from vnuma.checks.rule import Fail, Fix, Severity, rule
from vnuma.checks.rules.shape_questions import NO_HOT_ADD, even_nodes, node_memory, nodes_needed
from vnuma.checks.rules.sources import HOT_ADD_KB
from vnuma.domain.topology.licence import MOST_CLIENT_SOCKETS, is_windows_client, windows_sockets
from vnuma.domain.topology.topology import topologies
from vnuma.domain.vm.server import PROCESSOR_GROUP, WHOLE_NODES_BUILD
from vnuma.words.plain_text import counted

_BCDEDIT = "https://learn.microsoft.com/windows-hardware/drivers/devtest/bcdedit--set"
_GROUPS = "https://learn.microsoft.com/windows/win32/procthread/processor-groups"


@rule(
    "W01",
    Severity.WARN,
    "Windows prepares for more than 64 CPUs",
    condition="more than 64 vCPUs, or CPU hot-add that allows more than 64, on Windows before build 20348",
    consequence="Windows creates several processor groups and may show empty NUMA nodes.",
    fix="Set cpuid.maxVCPUs to at most 64, or turn CPU hot-add off; with more than 64 vCPUs accept the "
    "groups.",
    sources=(HOT_ADD_KB,),
    reads="vm guest",
    editions="Windows before build 20348 (Server 2019 and earlier)",
    related=("T11",),
)
def w01(facts: Facts) -> Fail | None:
    if known(facts.guest.build, "the build of Windows") >= WHOLE_NODES_BUILD:
        return None
    observed = {"vCPUs": str(facts.vcpus), "Windows build": str(facts.guest.build)}
    if facts.vcpus > PROCESSOR_GROUP:
        return Fail(observed)
    if _most_cpus(facts) <= PROCESSOR_GROUP:
        return None
    hot_add = {"cpuHotAddEnabled": "true", "cpuid.maxVCPUs": facts.key("cpuid.maxVCPUs") or "not set"}
    return Fail({**observed, **hot_add}, NO_HOT_ADD)


def _most_cpus(facts: Facts) -> int:
    """The CPUs that Windows prepares for: the VM's, or the most after hot-add."""
    if not facts.on("cpuHotAddEnabled"):
        return facts.vcpus
    return max(facts.vcpus, facts.key_number("cpuid.maxVCPUs") or PROCESSOR_GROUP + 1)


@rule(
    "W02",
    Severity.WARN,
    "Windows is configured to split processor groups",
    condition="SQL Server's nodes are in more processor groups than the VM's CPUs need, at 64 per group",
    consequence="Windows splits up to 64 CPUs into several groups only if configured to (groupsize, which "
    "Microsoft offers for testing); threads of a process may stay in one.",
    fix="Check bcdedit for groupsize, remove it, and restart Windows.",
    sources=(_BCDEDIT, _GROUPS),
    reads="vm sql",
    unconfirmed=True,
    related=("W01",),
)
def w02(facts: Facts) -> Fail | None:
    facts.require_running_shape()
    groups = facts.sql_known("processor_groups", "processor groups (sys.dm_os_nodes)")
    most = _most_cpus(facts)
    if groups <= -(-most // PROCESSOR_GROUP):
        return None
    return Fail(
        {"processor groups": str(groups), "most CPUs": str(most)},
        Fix("Remove groupsize, if present, and restart.", commands="bcdedit /deletevalue groupsize"),
    )


@rule(
    "W03",
    Severity.WARN,
    "The guest uses a different number of CPUs",
    condition="the number of CPUs that SQL Server shows differs from numCPUs",
    consequence="Arms of a study, or the sizing of this VM, count CPUs that the guest does not use.",
    fix="Check bcdedit for numproc (remove it and restart), or power-cycle the VM.",
    sources=(
        _BCDEDIT,
        "https://learn.microsoft.com/sql/relational-databases/system-dynamic-management-views/"
        "sys-dm-os-sys-info-transact-sql",
    ),
    reads="vm sql",
    unconfirmed=True,
    related=("T24",),
)
def w03(facts: Facts) -> Fail | None:
    facts.require_running_shape()
    shown = facts.sql.topology.vcpus
    if shown == facts.vcpus:
        return None
    return Fail({"numCPUs": str(facts.vcpus), "CPUs in the guest": str(shown)})


@rule(
    "W04",
    Severity.WARN,
    "Windows uses fewer sockets than the VM has",
    condition="more virtual sockets than this edition of Windows uses; without one, than any edition uses",
    consequence="CPUs in the other sockets are not used.",
    fix="Use fewer, larger sockets.",
    sources=("https://learn.microsoft.com/windows-server/get-started/locks-limits",),
    reads="vm guest",
    editions="Windows Home (1 socket), Pro (2), Enterprise and Pro for Workstations (4), Server (64)",
    unconfirmed=True,
    related=("S01",),
)
def w04(facts: Facts) -> Fail | None:
    caption = known(facts.guest.caption, "the edition of Windows")
    most = windows_sockets(caption) or MOST_CLIENT_SOCKETS
    if not windows_sockets(caption) and (facts.sockets <= most or not is_windows_client(caption)):
        raise Unknown(f"the socket limit of {caption} is unknown")
    if facts.sockets <= most:
        return None
    return Fail(
        {"sockets": str(facts.sockets), "Windows": caption, "sockets used": f"at most {most}"},
        fewer_sockets(facts, most),
    )


def fewer_sockets(facts: Facts, most: int) -> Fix:
    """The same vCPUs in at most `most` sockets: one for each host NUMA node that the VM needs, if the host is
    known ("Virtual Machine vCPU and vNUMA Rightsizing"), else as many as possible.
    """
    allowed = sorted(
        (one for one in topologies(facts.vcpus) if one.sockets <= most), key=lambda one: one.sockets
    )
    needed, estimate = _nodes_for_all(facts) if facts.subject.host else (most, "")
    shape = next((one for one in allowed if one.sockets >= needed), allowed[-1])
    return Fix(
        f"Use {counted(shape.sockets, 'socket')} of {counted(shape.cores_per_socket, 'core')}.{estimate}",
        arm={"topology": str(shape)},
        settings={"numCoresPerSocket": shape.cores_per_socket},
    )


def _nodes_for_all(facts: Facts) -> tuple[int, str]:
    """Host NUMA nodes for the vCPUs, and for the memory where both sizes are known; and what is an estimate
    where that decides.
    """
    by_vcpus = even_nodes(facts) or nodes_needed(facts)
    memory, node = facts.vm.settings.get("memoryMB"), facts.host.local_memory_mb
    by_memory = ceil(memory / node) if isinstance(memory, int) and node else 0
    if by_memory <= by_vcpus or not facts.host.node_memory_estimated:
        return max(by_vcpus, by_memory), ""
    return by_memory, f" Memory of a node: {node_memory(facts.host)}."
