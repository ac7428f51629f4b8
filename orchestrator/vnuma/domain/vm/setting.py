"""The settings of a VM that a study may change or must restore, and their requirements.

Settings are a flat mapping from name to value. Typed settings have vSphere's own names; a name with a dot is
an extraConfig key. `None` means: not set (an absent extraConfig key, or a field that this release lacks).

Sources: the comments of VirtualMachineConfigSpec in VMware's API reference; "needs power-off" is stated there
only for hot-add; for CPU count, cores per socket and affinity it follows the vSphere Client's documentation.
Latency sensitivity takes its cores at power-on, so a change while the VM runs would have no effect yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

Value = int | bool | str | tuple[int, ...] | None
Settings = Mapping[str, Value]


class Power(StrEnum):
    """Power states, with vSphere's names."""

    ON = "poweredOn"
    OFF = "poweredOff"
    SUSPENDED = "suspended"


@dataclass(frozen=True)
class SettingSpec:
    """A typed setting: `unit` for people, `cold` if the VM must be off to change it.

    `path` is below the VM's `config` and ends at a leaf, since its parent has much unneeded data
    (config.hardware has every device). `unset` is the explicit value for "not set"; None for a setting that
    always has a value.
    """

    name: str
    unit: str
    cold: bool
    privilege: str
    path: str
    unset: Value = None


_COUNT = "VirtualMachine.Config.CPUCount"
_RESOURCE = "VirtualMachine.Config.Resource"
_MEMORY = "VirtualMachine.Config.Memory"
_SETTINGS = "VirtualMachine.Config.Settings"
EXTRA_CONFIG_PRIVILEGE = "VirtualMachine.Config.AdvancedConfig"

TYPED: Mapping[str, SettingSpec] = {
    spec.name: spec
    for spec in (
        SettingSpec("numCPUs", "vCPUs", True, _COUNT, "hardware.numCPU"),
        SettingSpec("numCoresPerSocket", "cores", True, _COUNT, "hardware.numCoresPerSocket"),
        SettingSpec("autoCoresPerSocket", "", True, _COUNT, "hardware.autoCoresPerSocket"),
        SettingSpec("coresPerNumaNode", "cores", True, _COUNT, "numaInfo.coresPerNumaNode", 0),
        SettingSpec("autoCoresPerNumaNode", "", True, _COUNT, "numaInfo.autoCoresPerNumaNode"),
        SettingSpec("exposeVnumaOnCpuHotadd", "", True, _COUNT, "numaInfo.vnumaOnCpuHotaddExposed", False),
        SettingSpec("cpuHotAddEnabled", "", True, _COUNT, "cpuHotAddEnabled", False),
        SettingSpec("memoryHotAddEnabled", "", True, _MEMORY, "memoryHotAddEnabled", False),
        SettingSpec("memoryMB", "MB", True, _MEMORY, "hardware.memoryMB"),
        SettingSpec("cpuAffinity", "logical CPUs", True, _RESOURCE, "cpuAffinity", ()),
        SettingSpec("memoryAffinity", "NUMA nodes", True, _RESOURCE, "memoryAffinity", ()),
        SettingSpec(
            "memoryReservationLockedToMax", "", False, _RESOURCE, "memoryReservationLockedToMax", False
        ),
        SettingSpec("memoryReservation", "MB", False, _RESOURCE, "memoryAllocation.reservation", 0),
        SettingSpec("memoryLimit", "MB", False, _RESOURCE, "memoryAllocation.limit", -1),
        SettingSpec("memoryShares", "shares", False, _RESOURCE, "memoryAllocation.shares", "normal"),
        SettingSpec("cpuReservation", "MHz", False, _RESOURCE, "cpuAllocation.reservation", 0),
        SettingSpec("cpuLimit", "MHz", False, _RESOURCE, "cpuAllocation.limit", -1),
        SettingSpec("cpuShares", "shares", False, _RESOURCE, "cpuAllocation.shares", "normal"),
        SettingSpec("rebootPowerOff", "", False, _SETTINGS, "rebootPowerOff", False),
        SettingSpec("latencySensitivity", "", True, _RESOURCE, "latencySensitivity.level", "normal"),
    )
}

# Settings that vSphere 8 can choose itself, requested as 0, with the derived setting that shows it.
AUTOMATIC: Mapping[str, str] = {
    "numCoresPerSocket": "autoCoresPerSocket",
    "coresPerNumaNode": "autoCoresPerNumaNode",
}

# Derived by vSphere and never written: shown, but not compared for equality.
DERIVED = frozenset(AUTOMATIC.values())

# ESXi rewrites these at every power-on, and clears the last one with its reboot: a change of them has no
# author.
WRITTEN_BY_ESXI = frozenset(
    {"numa.autosize.cookie", "numa.autosize.vcpu.maxpervirtualnode", "rebootpoweroff"}
)

HARDWARE = "hardwareVersion"
"""The virtual hardware version's name among settings, though a study never changes it."""

# vSphere silently ignores these in extraConfig, since typed fields own them: evidence only.
_OWNED_BY_TYPED_FIELDS = ("cpuid.corespersocket", "sched.cpu.", "sched.mem.")

# Read for the design rules; a study neither changes nor restores them.
_READ_ONLY = ("cpuid.maxvcpus",)

# The lease manages its own keys; changes do not.
LEASE_PREFIX = "vnuma."


def is_extra_config(name: str) -> bool:
    """Whether this setting is an extraConfig key rather than a typed field."""
    return name not in TYPED


def is_governed(key: str) -> bool:
    """Whether an extraConfig key is part of the baseline: the NUMA keys and the power-cycle key."""
    lowered = key.lower()
    return lowered.startswith("numa.") or lowered == "vmx.reboot.powercycle"


def is_evidence(key: str) -> bool:
    """Whether an extraConfig key is read as evidence but never written."""
    return key.lower().startswith((*_OWNED_BY_TYPED_FIELDS, *_READ_ONLY))


def needs_power_off(name: str) -> bool:
    """Whether this setting takes effect only with the VM off.

    extraConfig keys are stored while the VM runs but read at power-on, so they count as cold.
    """
    spec = TYPED.get(name)
    return spec.cold if spec else True


def privilege_for(name: str) -> str:
    """The vSphere privilege that changing this setting needs."""
    spec = TYPED.get(name)
    return spec.privilege if spec else EXTRA_CONFIG_PRIVILEGE
