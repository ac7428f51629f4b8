"""What ESXi releases and virtual hardware versions have, and the names of the keys that decide vNUMA."""

from __future__ import annotations

from vnuma.domain.vm.facts import HostFacts, VmFacts

FOLLOW = "numa.vcpu.followcorespersocket"
AUTOSIZE_COOKIE = "numa.autosize.cookie"
AUTOSIZE_MAX = "numa.autosize.vcpu.maxPerVirtualNode"
MAX_PER_NODE = "numa.vcpu.maxPerVirtualNode"
MINIMUM = "numa.vcpu.min"
PREFER_HT = "numa.vcpu.preferHT"

# From 6.5 on, cores per socket no longer shape the guest's NUMA nodes by themselves.
DECOUPLED_SINCE = (6, 5)

# From 7.0 on, virtual sockets stay whole when vCPUs are spread over nodes (Denneman 2021-12-02).
SOCKETS_WHOLE_SINCE = (7, 0)

# vNUMA came with vSphere 5.0 and hardware version 8; below, no arm could differ from another.
VNUMA_SINCE = (5, 0)
MINIMUM_HARDWARE = 8

# virtualNuma and automatic cores per socket came with vSphere 8.0 and hardware version 20.
VIRTUAL_NUMA_SINCE = (8, 0)
VIRTUAL_NUMA_HARDWARE = 20
VIRTUAL_NUMA_SETTINGS = (
    *("autoCoresPerSocket", "coresPerNumaNode", "autoCoresPerNumaNode"),
    "exposeVnumaOnCpuHotadd",
)
"""The settings that came with them: a VM of another release or hardware version has none of these."""

# "numa.vcpu.min": smallest vCPU count that gets a vNUMA topology (vSphere 6.0 resource guide).
DEFAULT_MINIMUM_VCPUS = 9


def has_virtual_numa(vm: VmFacts, host: HostFacts) -> bool:
    """Whether this VM on this host has virtualNuma and automatic cores per socket."""
    return host.release.key >= VIRTUAL_NUMA_SINCE and vm.hardware_version >= VIRTUAL_NUMA_HARDWARE


# Newest hardware version of each release, newest first (VMware KB 1003746).
_HARDWARE = (
    ((9, 0), 22),
    ((8, 0), 20),
    ((7, 0), 17),
    ((6, 7), 14),
    ((6, 5), 13),
    ((6, 0), 11),
    ((5, 5), 10),
    ((5, 1), 9),
    ((5, 0), 8),
)


def hardware_version_of(release: tuple[int, int]) -> int:
    """The virtual hardware version that a release gives new VMs (its updates may have newer ones)."""
    return next((version for since, version in _HARDWARE if release >= since), 7)
