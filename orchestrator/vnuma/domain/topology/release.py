"""Features of ESXi releases and virtual hardware versions, and the keys that decide vNUMA."""

from __future__ import annotations

from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import TYPED, VIRTUAL_NUMA, Since

FOLLOW = "numa.vcpu.followcorespersocket"
AUTOSIZE_COOKIE = "numa.autosize.cookie"
AUTOSIZE_MAX = "numa.autosize.vcpu.maxPerVirtualNode"
MAX_PER_NODE = "numa.vcpu.maxPerVirtualNode"
MINIMUM = "numa.vcpu.min"
PREFER_HT = "numa.vcpu.preferHT"

# Since 6.5, cores per socket alone no longer shape the guest's NUMA nodes.
DECOUPLED_SINCE = (6, 5)

# Since 7.0, virtual sockets stay whole when vCPUs are distributed over nodes (Denneman 2021-12-02).
SOCKETS_WHOLE_SINCE = (7, 0)

# vNUMA needs vSphere 5.0 and hardware version 8; below, all arms would be alike.
VNUMA_SINCE = (5, 0)
MINIMUM_HARDWARE = 8

VIRTUAL_NUMA_SINCE, VIRTUAL_NUMA_HARDWARE = VIRTUAL_NUMA.release, VIRTUAL_NUMA.hardware
VIRTUAL_NUMA_SETTINGS = tuple(spec.name for spec in TYPED.values() if spec.since == VIRTUAL_NUMA)
"""Settings that a VM of another release or hardware version lacks."""

# "numa.vcpu.min": smallest vCPU count that gets a vNUMA topology (vSphere 6.0 resource guide).
DEFAULT_MINIMUM_VCPUS = 9


def has_virtual_numa(vm: VmFacts, host: HostFacts) -> bool:
    """Whether this VM on this host has virtualNuma and automatic cores per socket."""
    return has(VIRTUAL_NUMA, vm, host)


def has(since: Since | None, vm: VmFacts, host: HostFacts) -> bool:
    """Whether this VM on this host has what came then."""
    return since is None or (host.release.key >= since.release and vm.hardware_version >= since.hardware)


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


# Newest hardware version of each release, with the update that introduced it (Broadcom KB 315655).
_NEWEST_HARDWARE = (
    ((9, 0), 22),
    ((8, 0, 2), 21),
    ((8, 0, 0), 20),
    ((7, 0, 2), 19),
    ((7, 0, 1), 18),
    ((7, 0, 0), 17),
    ((6, 7), 15),
    ((6, 5), 13),
    ((6, 0), 11),
    ((5, 5), 10),
    ((5, 1), 9),
    ((5, 0), 8),
)
NEWEST_KNOWN = (9, 0)
"""The newest release that any source here is about."""


def newest_hardware(version: str) -> int | None:
    """The newest virtual hardware version that ESXi of this version runs; None: unknown. For a release
    without its update (8.0), that of its last update; 6.7 has one version for all updates.
    """
    parts = tuple(int(part) for part in version.split(".") if part.isdecimal())[:3]
    if not (5, 0) <= parts[:2] <= NEWEST_KNOWN:
        return None
    whole = (*parts, 99)[:3]
    return next(newest for since, newest in _NEWEST_HARDWARE if whole >= since)


# Most vCPUs and memory (GB) of each hardware version ("Hardware Features Available with Virtual Machine
# Compatibility Settings", vSphere Virtual Machine Administration 6.7, 7.0 and 8.0). Of 22 only the vCPUs are
# known, and only from https://vinfrastructure.it/it/?p=39307; it allows no less memory.
MOST_MEMORY_GB = 24_560
"""Of a VM, as far as documented (hardware version 18 to 21)."""
_MOST = (
    (23, None),
    (22, (960, None)),
    (18, (768, MOST_MEMORY_GB)),
    (15, (256, 6_128)),
    (13, (128, 6_128)),
    (11, (128, 4_080)),
    (9, (64, 1_011)),
    (8, (32, 1_011)),
    (7, (8, 255)),
)


def most_of_hardware(hardware: int) -> tuple[int, int | None] | None:
    """The most vCPUs, and the most memory in GB (None: not known), of a VM of this hardware version; None:
    the version is not known."""
    return next((most for since, most in _MOST if hardware >= since), None)
