"""The settings of a VM that a study may change or must restore, and their requirements.

Settings are a flat mapping from name to value. Typed settings have vSphere's own names; a name with a dot is
an extraConfig key. `None` means: not set (an absent extraConfig key, or a field that this release lacks).

Sources: the comments of VirtualMachineConfigSpec in VMware's API reference; "needs power-off" is stated there
only for hot-add; for CPU count, cores per socket and affinity it follows the vSphere Client's documentation.
Latency sensitivity takes its cores at power-on, so a change while the VM runs would have no effect yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from vnuma.errors import UsageError

Value = int | bool | str | tuple[int, ...] | None
Settings = Mapping[str, Value]


class Power(StrEnum):
    """Power states, with vSphere's names."""

    ON = "poweredOn"
    OFF = "poweredOff"
    SUSPENDED = "suspended"


class ValueKind(StrEnum):
    """What a typed setting's value is: decides how it is read, written and found in an event."""

    NUMBER = "number"
    SWITCH = "switch"
    WORD = "word"
    CPUS = "CPUs or nodes"
    """An object with a set of numbers; no set is ()."""
    SHARES = "shares"
    """A level as a word, custom shares as a number."""


@dataclass(frozen=True)
class Since:
    """The first ESXi release, and the first virtual hardware version, that have a setting."""

    release: tuple[int, int]
    hardware: int

    @property
    def words(self) -> str:
        """`ESXi 8.0 and hardware version 20`."""
        return f"ESXi {'.'.join(map(str, self.release))} and hardware version {self.hardware}"


VIRTUAL_NUMA = Since((8, 0), 20)
"""virtualNuma and automatic cores per socket (vSphere 8.0 release notes)."""


@dataclass(frozen=True)
class SettingSpec:
    """A typed setting: `unit` for people, `cold` if the VM must be off to change it.

    `path` is below the VM's `config` and ends at a leaf, since its parent has much unneeded data
    (config.hardware has every device). `unset` is what an absent field means; None for a setting that always
    has a value or is derived. `since` is None for a setting that every release has.
    """

    name: str
    unit: str
    cold: bool
    privilege: str
    path: str
    unset: Value = None
    kind: ValueKind = ValueKind.NUMBER
    since: Since | None = None

    @property
    def request(self) -> tuple[str, str]:
        """Its field in a VirtualMachineConfigSpec, and the part of that field; empty if it is the value.

        The spec has `hardware` flat and `numaInfo` as `virtualNuma`; everything else is where it is read.
        """
        parent, _, leaf = self.path.partition(".")
        if self.kind is ValueKind.CPUS:
            return self.path, "affinitySet"
        if parent == "numaInfo":
            return "virtualNuma", self.name
        return (parent, leaf) if leaf and parent != "hardware" else (self.name, "")


_COUNT = "VirtualMachine.Config.CPUCount"
_RESOURCE = "VirtualMachine.Config.Resource"
_MEMORY = "VirtualMachine.Config.Memory"
_SETTINGS = "VirtualMachine.Config.Settings"
EXTRA_CONFIG_PRIVILEGE = "VirtualMachine.Config.AdvancedConfig"
_8, _COLD, _HOT = VIRTUAL_NUMA, True, False
_WORD, _CPUS, _SHARES = ValueKind.WORD, ValueKind.CPUS, ValueKind.SHARES


def _switch(name: str, privilege: str, path: str = "", since: Since | None = None) -> SettingSpec:
    """A switch that takes effect at power-on, off unless set."""
    return SettingSpec(name, "", True, privilege, path or name, False, ValueKind.SWITCH, since)


def _automatic(name: str, path: str) -> SettingSpec:
    """Shows that vSphere chose a number itself."""
    return SettingSpec(name, "", True, _COUNT, path, None, ValueKind.SWITCH, VIRTUAL_NUMA)


TYPED: Mapping[str, SettingSpec] = {
    spec.name: spec
    for spec in (
        SettingSpec("numCPUs", "vCPUs", _COLD, _COUNT, "hardware.numCPU"),
        SettingSpec("numCoresPerSocket", "cores", _COLD, _COUNT, "hardware.numCoresPerSocket", 1),
        _automatic("autoCoresPerSocket", "hardware.autoCoresPerSocket"),
        SettingSpec("coresPerNumaNode", "cores", _COLD, _COUNT, "numaInfo.coresPerNumaNode", 0, since=_8),
        _automatic("autoCoresPerNumaNode", "numaInfo.autoCoresPerNumaNode"),
        _switch("exposeVnumaOnCpuHotadd", _COUNT, "numaInfo.vnumaOnCpuHotaddExposed", _8),
        _switch("cpuHotAddEnabled", _COUNT),
        _switch("memoryHotAddEnabled", _MEMORY),
        SettingSpec("memoryMB", "MB", _COLD, _MEMORY, "hardware.memoryMB"),
        SettingSpec("cpuAffinity", "logical CPUs", _COLD, _RESOURCE, "cpuAffinity", (), _CPUS),
        SettingSpec("memoryAffinity", "NUMA nodes", _COLD, _RESOURCE, "memoryAffinity", (), _CPUS),
        replace(_switch("memoryReservationLockedToMax", _RESOURCE), cold=False),
        SettingSpec("memoryReservation", "MB", _HOT, _RESOURCE, "memoryAllocation.reservation", 0),
        SettingSpec("memoryLimit", "MB", _HOT, _RESOURCE, "memoryAllocation.limit", -1),
        SettingSpec("memoryShares", "shares", _HOT, _RESOURCE, "memoryAllocation.shares", "normal", _SHARES),
        SettingSpec("cpuReservation", "MHz", _HOT, _RESOURCE, "cpuAllocation.reservation", 0),
        SettingSpec("cpuLimit", "MHz", _HOT, _RESOURCE, "cpuAllocation.limit", -1),
        SettingSpec("cpuShares", "shares", _HOT, _RESOURCE, "cpuAllocation.shares", "normal", _SHARES),
        _switch("rebootPowerOff", _SETTINGS),
        SettingSpec("latencySensitivity", "", _COLD, _RESOURCE, "latencySensitivity.level", "normal", _WORD),
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


def meant(name: str, value: Value) -> Value:
    """A setting's value, or what its absence means: a typed setting's default, an absent extraConfig key.

    vSphere may leave out a field at its default and report it after the next reconfiguration.
    """
    spec = TYPED.get(name)
    return spec.unset if spec and value is None else value


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


SIZE = {
    "numCPUs": "vCPUs (--vcpus)",
    "numCoresPerSocket": "cores per socket (--cores-per-socket)",
    "memoryMB": "memory (--memory)",
}
"""A VM's size: settings that have a place of their own wherever somebody describes a VM."""


def named_settings(pairs: Iterable[str]) -> dict[str, Value]:
    """KEY=VALUE as settings: booleans, integers, otherwise text. Raises UsageError."""
    found: dict[str, Value] = {}
    for pair in pairs:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals:
            raise UsageError(f"'{pair}' is not KEY=VALUE.", fix="For example: numa.vcpu.min=4")
        if not (name in TYPED or is_governed(name)):
            raise UsageError(
                f"'{pair}' is not a setting that affects a VM's shape.",
                fix=f"Use a numa.* key, or one of {', '.join(sorted(TYPED - SIZE.keys()))}.",
            )
        if name in SIZE:
            raise UsageError(f"'{pair}': {name} has a place of its own.", fix=f"Give it as {SIZE[name]}.")
        found[name] = _value(text) if name in TYPED else text
    return found


def _value(text: str) -> Value:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    return int(text) if text.isdecimal() and len(text) <= 18 else text
