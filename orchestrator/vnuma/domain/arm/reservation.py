"""Reservations of an arm, within the limits of VM and host."""

from __future__ import annotations

from vnuma.domain.arm.arm import Arm
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.setting import Value
from vnuma.errors import ArmImpossible

_BEYOND = "P30"
"""Preflight's id for a reservation beyond the VM's or its host's size."""


def reservation_settings(arm: Arm, vcpus: int, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    """The settings for both reservations. Raises ArmImpossible."""
    return _memory(arm, vm, host) | _cpu(arm, vcpus, host)


def _memory(arm: Arm, vm: VmFacts, host: HostFacts) -> dict[str, Value]:
    desired: dict[str, Value] = {}
    size = vm.settings["memoryMB"] if arm.memory_mb == "keep" else arm.memory_mb
    assert isinstance(size, int)
    match arm.memory_reservation:
        case "keep":
            kept = vm.settings.get("memoryReservation")
            locked = vm.settings.get("memoryReservationLockedToMax") is True
            reserved = size if locked else kept if isinstance(kept, int) else 0
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
        raise ArmImpossible(
            _BEYOND,
            f"arm {arm.label} reserves {reserved} MB, but {vm.name} has {size} MB.",
            fix="Lower memory_reservation.",
        )
    if 0 < host.memory_mb <= reserved:
        raise ArmImpossible(
            _BEYOND,
            f"arm {arm.label} reserves {reserved} MB, but {host.name} has {host.memory_mb} MB in all.",
            fix="Lower memory_reservation, or use a larger host.",
        )
    return desired


def _cpu(arm: Arm, vcpus: int, host: HostFacts) -> dict[str, Value]:
    match arm.cpu_reservation:
        case "keep":
            return {}
        case "none":
            return {"cpuReservation": 0}
        case "full":
            return {"cpuReservation": full_cpu_reservation(vcpus, host)}
        case megahertz:
            most = host.cores * host.mhz
            if host.mhz and megahertz > most:
                raise ArmImpossible(
                    "A09",
                    f"arm {arm.label} reserves {megahertz} MHz, but {host.name} has {most} MHz in all.",
                    fix="Lower cpu_reservation.",
                )
            return {"cpuReservation": megahertz}


def full_cpu_reservation(vcpus: int, host: HostFacts) -> int:
    """vCPUs times the host's clock, in MHz: what vSphere 8's resource guide asks of a low-latency VM.

    Raises ArmImpossible where the host has fewer cores, or does not tell its clock.
    """
    if not host.mhz:
        raise ArmImpossible(
            "A08",
            f"{host.name} does not report its clock speed, so a full CPU reservation is unknown.",
            fix="Write cpu_reservation in MHz.",
        )
    if vcpus > host.cores:
        raise ArmImpossible(
            "T10",
            f"{vcpus} vCPUs cannot be reserved in full on the {host.cores} cores of {host.name}.",
            fix="Use fewer vCPUs.",
        )
    return vcpus * host.mhz


def refuse_high_without_reservations(arm: Arm, vcpus: int, after: dict[str, Value], host: HostFacts) -> None:
    """High latency sensitivity gives every vCPU a core, and requires reserving all memory and CPU.

    Raises ArmImpossible.
    """
    if after.get("latencySensitivity") != "high":
        return
    memory = after.get("memoryReservationLockedToMax") is True or (
        after.get("memoryReservation") == after.get("memoryMB")
    )
    reserved = after.get("cpuReservation")
    cpu = isinstance(reserved, int) and reserved > 0 and reserved >= vcpus * host.mhz
    if memory and cpu:
        return
    missing = " and ".join(word for word, there in (("memory", memory), ("CPU", cpu)) if not there)
    raise ArmImpossible(
        "A08",
        f"arm {arm.label}: high latency sensitivity needs all memory and CPU reserved; {missing} is not.",
        fix="Set memory_reservation: locked and cpu_reservation: full, or latency_sensitivity: normal.",
    )
