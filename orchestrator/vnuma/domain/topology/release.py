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
EXPOSE = "exposeVnumaOnCpuHotadd"
HOST_FOLLOW, HOST_PREFER_HT = "Numa.FollowCoresPerSocket", "Numa.PreferHT"
"""Advanced options of a host."""

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


# The hardware version that came with each release and update (VMware KB 1003746, Broadcom KB 315655).
_HARDWARE = (
    ((9, 0, 0), 22),
    ((8, 0, 2), 21),
    ((8, 0, 0), 20),
    ((7, 0, 2), 19),
    ((7, 0, 1), 18),
    ((7, 0, 0), 17),
    ((6, 7, 0), 14),
    ((6, 5, 0), 13),
    ((6, 0, 0), 11),
    ((5, 5, 0), 10),
    ((5, 1, 0), 9),
    ((5, 0, 0), 8),
)
_OLDEST_HARDWARE = 7
_IN_UPDATES: dict[tuple[int, ...], int] = {(6, 7): 15}
"""Came with an update that the version does not show: 6.7 Update 2 calls itself 6.7.0."""
NEWEST_KNOWN = (9, 0)
"""The newest release that any source here is about."""


def hardware_version_of(version: str) -> int:
    """The virtual hardware version of new VMs on ESXi of this version. Without its update (8.0) that of the
    first edition, which every update runs.
    """
    return _hardware((*_numbers(version), 0, 0))


def newest_hardware(version: str) -> int | None:
    """The newest virtual hardware version that ESXi of this version runs; None: unknown. For a release
    without its update (8.0), that of its last update; 6.7 has one version for all updates.
    """
    parts = _numbers(version)
    if not (5, 0) <= parts[:2] <= NEWEST_KNOWN:
        return None
    return _IN_UPDATES.get(parts[:2]) or _hardware((*parts, 99))


def _hardware(version: tuple[int, ...]) -> int:
    return next((hardware for since, hardware in _HARDWARE if version[:3] >= since), _OLDEST_HARDWARE)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())[:3]


# Most vCPUs and memory (GB) of each hardware version ("Hardware Features Available with Virtual Machine
# Compatibility Settings", vSphere Virtual Machine Administration 6.7, 7.0 and 8.0). Of 22 only the vCPUs are
# known, and only from https://vinfrastructure.it/it/?p=39307; it allows no less memory.
MOST_VCPUS = 960
"""Of a VM of any hardware version."""
MOST_MEMORY_GB = 24_560
"""Of a VM, as far as documented (hardware version 18 to 21)."""
_MOST = (
    (23, None),
    (22, (MOST_VCPUS, None)),
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


def beyond_hardware(vcpus: int, memory_mb: int, hardware: int) -> str:
    """Why a VM of this hardware version cannot be so large, in a few words; empty if it can, or if the limit
    is not known.
    """
    most = most_of_hardware(hardware)
    if most is None:
        return ""
    most_vcpus, most_gb = most
    has = [f"{most_vcpus} vCPUs"] if vcpus > most_vcpus else []
    has += [f"{most_gb} GB"] if most_gb and memory_mb > most_gb * 1024 else []
    return f"hardware version {hardware} allows at most {' and '.join(has)}" if has else ""
