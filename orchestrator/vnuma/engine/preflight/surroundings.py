"""Findings about the surroundings of a VM in vSphere that would spoil or break a study.

A study may accept some of the blocking ones (`accept`), which then only warn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vnuma.domain.arm.desired_settings import desired_settings
from vnuma.domain.study.study import Study
from vnuma.domain.vm.facts import HostFacts, VmFacts
from vnuma.domain.vm.surroundings import Surroundings
from vnuma.engine.preflight.findings import Finding, some_of
from vnuma.errors import ArmImpossible

_RECENT_MINUTES = 10.0
_UNLIMITED = {
    "memory": "Set the limit to Unlimited: ESXi reclaims memory above it from the guest, and refuses a full "
    "reservation.",
    "CPU": "Set the limit to Unlimited: ESXi makes vCPUs wait once the VM has used it up.",
}


def vm_findings(name: str, host: str, seen: Surroundings) -> Iterator[Finding]:
    """Findings about the VM's surroundings in vSphere."""
    yield from _manager_findings(name, seen)
    yield from _device_findings(name, seen)
    if seen.host_trouble:
        yield Finding.block(
            "P36",
            f"{name} could not be powered on again: {seen.host_trouble}",
            "End the host's maintenance or reconnect it, or move the VM, then start again.",
        )
    for limit in seen.limits:
        unit = "MB" if limit.resource == "memory" else "MHz"
        where = "a resource pool above it" if limit.of_pool else "the VM itself"
        yield Finding(
            "P37",
            "block" if limit.resource == "memory" else "warn",
            f"{name} can use only {limit.limit:,} of its {limit.has:,} {unit} of {limit.resource}, because "
            f"of a limit on {where}.",
            _UNLIMITED[limit.resource],
        )
    if seen.neighbours:
        many = len(seen.neighbours)
        yield Finding.warn(
            "P10",
            f"{many} other {'VM runs' if many == 1 else 'VMs run'} on {host}: {some_of(seen.neighbours)}.",
            "Move them away during the study, or expect noise from them.",
        )
    if seen.moved_minutes_ago is not None and seen.moved_minutes_ago < _RECENT_MINUTES:
        yield Finding.warn(
            "P19",
            f"{name} was moved to {host} {seen.moved_minutes_ago:.0f} minutes ago.",
            "Find out who moves it, and keep it there during the study.",
        )
    if seen.free_licence:
        yield Finding.block(
            "P18",
            f"{host} has the free hypervisor's licence, whose API only reads (RestrictedVersion).",
            "Use a licensed or evaluation host.",
        )


def _manager_findings(name: str, seen: Surroundings) -> Iterator[Finding]:
    """Other software that manages the VM or works on it."""
    if seen.fault_tolerance:
        yield Finding.block(
            "P08",
            f"{name} is protected by Fault Tolerance; it can be neither reconfigured nor measured alone.",
            "Study a clone, or turn Fault Tolerance off.",
        )
    if seen.running_tasks:
        yield Finding.block(
            "P09",
            f"vSphere is running tasks on {name}: {some_of(seen.running_tasks)}.",
            "Wait until these tasks have ended.",
        )
    if seen.high_availability:
        yield Finding.warn(
            "P11",
            f"vSphere HA protects {name}: if its host fails, it starts on another host.",
            "Set its HA restart priority to Disabled during the study.",
        )
    if seen.admission_control:
        yield Finding.warn(
            "P41",
            f"vSphere HA's admission control may refuse to power {name} on: it keeps capacity of the cluster "
            "free for failovers.",
            "Reserve no more in an arm than the VM does now; or relax admission control during the study.",
        )
    if seen.heartbeat_watched:
        yield Finding.warn(
            "P38",
            f"vSphere HA's VM monitoring watches {name}: it resets the VM when VMware Tools send no "
            "heartbeat, which a slow boot or a busy guest can cause.",
            "Set its VM monitoring to Disabled (VM overrides of the cluster) during the study.",
        )
    if seen.change_tracking:
        yield Finding.warn(
            "P12",
            f"Changed block tracking is on: a backup of {name} may start during the study.",
            "Suspend its backup job, or run the study outside the backup hours: allowed_hours.",
        )
    if seen.managed_by:
        yield Finding.warn(
            "P17",
            f"{name} is managed by {seen.managed_by}, which may undo or forbid changes.",
            "Ask its administrator first.",
        )


def _device_findings(name: str, seen: Surroundings) -> Iterator[Finding]:
    if seen.shared_disks:
        yield Finding.block(
            "P13",
            f"{name} shares disks with other VMs: {some_of(seen.shared_disks)}.",
            "Study a clone with its own disks.",
        )
    if seen.raw_disks:
        yield Finding.block(
            "P14",
            (
                f"{name} has raw disks (RDM): {some_of(seen.raw_disks)}. A clone may still use production's "
                "disks."
            ),
            "Study a clone on virtual disks.",
        )
    if seen.passthrough:
        yield Finding.warn(
            "P15",
            f"{name} has passthrough devices, which need all memory reserved: {some_of(seen.passthrough)}.",
            "Keep memory_reservation: locked in every arm.",
        )
    if seen.virtual_tpm or seen.encrypted:
        yield Finding.warn(
            "P16",
            f"{name} has {'a virtual TPM' if seen.virtual_tpm else 'encrypted disks'}: "
            "each power-on needs vCenter's key provider.",
            "Make sure that the key provider is available during the whole study.",
        )


def passthrough_findings(study: Study, vm: VmFacts, host: HostFacts, seen: Surroundings) -> Iterator[Finding]:
    """Arms that do not reserve all memory of a VM with passthrough devices: ESXi refuses that power-on."""
    for label in study.labels if seen.passthrough else ():
        arm = study.arm(label)
        try:
            settings = {**vm.settings, **desired_settings(arm, vm, host)}
        except ArmImpossible:
            continue  # reported for the arm itself
        reserved = settings.get("memoryReservation")
        all_reserved = settings.get("memoryReservationLockedToMax") is True or (
            isinstance(reserved, int) and reserved == settings["memoryMB"]
        )
        if not all_reserved:
            yield Finding.block(
                "P15",
                f"{vm.name} has passthrough devices ({some_of(seen.passthrough)}), and could not be powered "
                f"on in arm {arm.label}, which does not reserve all memory.",
                "Set memory_reservation: locked in that arm.",
            )


def accepted(study: Study, finding: Finding) -> Finding:
    """The finding after the study's `accept`: an accepted one only warns."""
    if finding.severity == "block" and finding.id in study.accept:
        return replace(finding, severity="warn", what=f"{finding.what} Accepted by the study.")
    return finding
