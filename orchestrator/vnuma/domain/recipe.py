"""The recipe: which settings bring an arm about on a given ESXi release.

Rules by release: vSphere Resource Management guides 6.0, 6.5 and 8.0 ("Virtual NUMA Controls");
Denneman, "Decoupling of Cores per Socket from Virtual NUMA Topology in vSphere 6.5" (2016).
"""

from __future__ import annotations

from vnuma.domain.affinity import physical_cores, refuse_impossible
from vnuma.domain.arm import Arm
from vnuma.domain.facts import HostFacts, VmFacts
from vnuma.domain.setting import Value
from vnuma.errors import PreflightBlocked

FOLLOW = "numa.vcpu.followcorespersocket"
AUTOSIZE_COOKIE = "numa.autosize.cookie"
AUTOSIZE_MAX = "numa.autosize.vcpu.maxPerVirtualNode"

# From 6.5 on, cores per socket no longer shape the guest's NUMA nodes by themselves.
DECOUPLED_SINCE = (6, 5)

# vNUMA needs hardware version 8 (vSphere 5.0); below, no arm could differ from another.
MINIMUM_HARDWARE = 8


def desired_settings(arm: Arm, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    """What to set on this VM for this arm. Settings that the arm keeps are left out.

    Raises PreflightBlocked when this host or VM cannot give the arm what it asks for.
    """
    if vm.hardware_version < MINIMUM_HARDWARE:
        raise PreflightBlocked(
            f"{vm.name} has hardware version {vm.hardware_version}; vNUMA needs {MINIMUM_HARDWARE} or later.",
            fix="Upgrade the clone's compatibility in the vSphere Client, with the VM off.",
        )
    desired: dict[str, Value] = {
        "numCPUs": arm.topology.vcpus,
        "numCoresPerSocket": arm.topology.cores_per_socket,
    }
    desired |= _memory(arm, vm, host)
    desired |= _affinity(arm, host)
    desired |= _numa_keys(arm, host)
    return desired


def _memory(arm: Arm, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    desired: dict[str, Value] = {}
    size = vm.settings["memoryMB"] if arm.memory_mb == "keep" else arm.memory_mb
    assert isinstance(size, int)
    if arm.memory_mb != "keep":
        desired["memoryMB"] = size
    match arm.memory_reservation:
        case "keep":
            return desired
        case "locked":
            reserved = size
            desired["memoryReservationLockedToMax"] = True
        case "none":
            reserved = 0
            desired |= {"memoryReservationLockedToMax": False, "memoryReservation": 0}
        case megabytes:
            reserved = megabytes
            desired |= {"memoryReservationLockedToMax": False, "memoryReservation": megabytes}
    if reserved > size:
        raise PreflightBlocked(
            f"arm {arm.label} reserves {reserved} MB, but {vm.name} has {size} MB.",
            fix="Lower memory_reservation.",
        )
    if reserved >= host.memory_mb:
        raise PreflightBlocked(
            f"arm {arm.label} reserves {reserved} MB, but {host.name} has {host.memory_mb} MB in all.",
            fix="Lower memory_reservation, or use a larger host.",
        )
    return desired


def _affinity(arm: Arm, host: HostFacts) -> dict[str, Value]:
    match arm.affinity:
        case "keep":
            return {}
        case "none":
            return {"cpuAffinity": ()}
        case "physical_cores":
            return {"cpuAffinity": physical_cores(host, arm.topology.vcpus)}
        case cpus:
            refuse_impossible(cpus, arm.topology.vcpus, host)
            return {"cpuAffinity": tuple(sorted(set(cpus)))}


def _numa_keys(arm: Arm, host: HostFacts) -> dict[str, Value]:
    desired: dict[str, Value] = {}
    decoupled = host.release.key >= DECOUPLED_SINCE
    match arm.follow_cores_per_socket:
        case "on":
            desired[FOLLOW] = "1"
        case "off":
            desired[FOLLOW] = None
        case "auto":
            desired[FOLLOW] = "1" if decoupled else None
        case "keep":
            pass
    if arm.numa_autosize == "clear":
        desired |= {AUTOSIZE_COOKIE: None, AUTOSIZE_MAX: None}
    return desired
