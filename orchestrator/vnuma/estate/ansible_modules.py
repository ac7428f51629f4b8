"""The settings that Ansible tasks give a VM, from the options of the modules that create VMs.

Options, units and defaults of new VMs: community.vmware.vmware_guest,
https://docs.ansible.com/ansible/latest/collections/community/vmware/vmware_guest_module.html, and
vmware.vmware.vm, https://docs.ansible.com/ansible/latest/collections/vmware/vmware/vm_module.html.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vnuma.checks.subject import EXTRA_CONFIG, HARDWARE
from vnuma.domain.topology.topology import Topology
from vnuma.domain.vm.estate import HOST_DECIDES, Declared, NotShown
from vnuma.domain.vm.setting import AUTOMATIC, TYPED, Value, ValueKind, is_evidence, is_governed
from vnuma.estate.ansible_files import Unresolved, resolved
from vnuma.estate.design_vm import NEW_VM, SIZE, DesignedVm

_NOT_SHOWN = NotShown("Ansible")


class Invalid(Unresolved):
    """A value that no run can use either."""


class Origin(StrEnum):
    """Where what a task does not set comes from; a value is the reason for which it is unknown."""

    NEW = "the task does not set it, and vSphere's default differs by release"
    TEMPLATE = "the template's own: the task does not set it"
    EXISTING = "the VM exists and keeps it: the task does not set it"


Variables = Mapping[str, Any]


@dataclass
class TaskVm:
    """A VM as a sequence of tasks shapes it."""

    name: str
    declared: Declared
    settings: dict[str, Value] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    hardware: int | None = None
    guest_id: str = ""
    accepted: tuple[str, ...] = ()
    at: str = ""
    """File and line of the present task."""
    stated: dict[str, tuple[Value, str]] = field(default_factory=dict)
    """What tasks set, each with the place of the last that did."""
    unreadable: str = ""
    """Why its size is not a number; empty if it is one, or is known only when Ansible runs."""
    contradictions: list[str] = field(default_factory=list)
    """What two tasks set differently, as text."""

    def state(self, setting: str, value: Value) -> None:
        """Set a value from a task; the last one wins, and a different earlier value is noted."""
        earlier = self.stated.get(setting)
        if earlier and earlier[0] != value:
            self.contradictions.append(
                f"{setting} is {json.dumps(earlier[0])} at {earlier[1]} and {json.dumps(value)} at "
                f"{self.at}: the last is checked"
            )
        self.stated[setting] = (value, self.at)
        self.settings[setting] = value
        self.absent.pop(setting, None)

    def leave(self, settings: Mapping[str, Value], absent: Mapping[str, str]) -> None:
        """Set defaults and reasons for whatever no earlier task has set."""
        self.settings |= {name: value for name, value in settings.items() if name not in self.stated}
        self.absent |= {name: why for name, why in absent.items() if name not in self.stated}

    def designed(self) -> DesignedVm:
        """The VM in the form of every design."""
        return DesignedVm(
            address=self.name,
            name=self.name,
            hardware=self.hardware,
            settings=self.settings,
            absent=self.absent,
            guest_id=self.guest_id,
            declared=self.declared,
            accepted=self.accepted,
        )

    def set_keys(self, keys: Mapping[str, Any]) -> None:
        """Set keys of extraConfig, without those that no rule reads."""
        for name, value in keys.items():
            if is_governed(str(name)) or is_evidence(str(name)):
                self.state(str(name), str(value).upper() if isinstance(value, bool) else str(value))


def _count(value: object) -> Value:
    """An integer, also as the text that a template returns."""
    if isinstance(value, float) and value == int(value):
        return int(value)
    text = str(value).strip()
    if isinstance(value, bool) or not text.lstrip("-").isdecimal() or len(text) > 12:
        raise Invalid(f"{text[:20]!r} is not a whole number")
    return int(text)


def _switch(value: object) -> Value:
    text = str(value).strip().lower()
    if text not in {"true", "yes", "on", "1", "false", "no", "off", "0"}:
        raise Unresolved(f"{text[:20]!r} is neither yes nor no")
    return text in {"true", "yes", "on", "1"}


_OPTIONS: Mapping[str, tuple[str, str]] = {
    "numCPUs": ("hardware.num_cpus", "cpu.cores"),
    "numCoresPerSocket": ("hardware.num_cpu_cores_per_socket", "cpu.cores_per_socket"),
    "memoryMB": ("hardware.memory_mb", "memory.size_mb"),
    "cpuHotAddEnabled": ("hardware.hotadd_cpu", "cpu.enable_hot_add"),
    "memoryHotAddEnabled": ("hardware.hotadd_memory", "memory.enable_hot_add"),
    "memoryReservationLockedToMax": ("hardware.memory_reservation_lock", "memory.reserve_all_memory"),
    "memoryReservation": ("hardware.mem_reservation", "memory.reservation"),
    "memoryLimit": ("hardware.mem_limit", "memory.limit"),
    "cpuReservation": ("hardware.cpu_reservation", "cpu.reservation"),
    "cpuLimit": ("hardware.cpu_limit", "cpu.limit"),
}
"""Each setting's option in vmware_guest, and in vm. Without it, a new VM has vSphere's "not set"."""


def vm_of_module(module: str, options: Variables, variables: Variables, vm: TaskVm) -> None:
    """Apply a module's task to the VM; one that an earlier task here made or changed keeps the rest."""
    hardware = options.get("hardware") or {}
    if module == "guest" and isinstance(hardware, Mapping) and "memory_reservation" in hardware:
        options = {**options, "hardware": {"mem_reservation": hardware["memory_reservation"], **hardware}}
    origin = _origin(module, options)
    if origin is Origin.NEW:
        vm.leave(NEW_VM, {})
    elif not vm.settings:
        vm.leave({}, dict.fromkeys((*NEW_VM, EXTRA_CONFIG), _NOT_SHOWN))
    keeps = origin is Origin.EXISTING and bool(vm.settings)
    for setting, (of_guest, of_vm) in _OPTIONS.items():
        given = _read(setting, of_guest if module == "guest" else of_vm, options, variables, vm)
        if not given and not keeps:
            _leave(setting, origin, vm)
    if not keeps:
        _leave("latencySensitivity", origin, vm)
    _read_hardware(options, variables, vm, None if keeps else origin)
    try:
        keys = resolved(options.get("advanced_settings") or [], variables)
        vm.set_keys({one["key"]: one["value"] for one in keys if isinstance(one, Mapping) and len(one) > 1})
        vm.guest_id = str(resolved(options.get("guest_id") or "", variables))
    except (Unresolved, KeyError, TypeError) as error:
        vm.absent[EXTRA_CONFIG] = f"advanced_settings: {error}"


_SHAPING = frozenset(
    (
        *("hardware", "cpu", "memory", "advanced_settings", "guest_id", "hardware_version"),
        *("template", "template_src"),
    )
)
"""Options with which a task shapes a VM."""


def shapes_a_vm(options: Variables) -> bool:
    """Whether a task makes a VM or changes its hardware: not one that powers it on or renames it."""
    return any(options.get(name) for name in _SHAPING)


def _origin(module: str, options: Variables) -> Origin:
    """A new VM needs a guest_id (both modules demand it), unless a template has it."""
    if options.get("uuid") or options.get("moid"):
        return Origin.EXISTING
    if module == "guest" and (options.get("template") or options.get("template_src")):
        return Origin.TEMPLATE
    return Origin.NEW if options.get("guest_id") else Origin.EXISTING


def _leave(setting: str, origin: Origin, vm: TaskVm) -> None:
    """What no task sets: a new VM's default, else unknown."""
    spec = TYPED[setting]
    if origin is not Origin.NEW or spec.unset is None or setting in AUTOMATIC:
        vm.leave({}, {setting: str(origin.value)})
    else:
        vm.leave({setting: spec.unset}, {})


def _read(setting: str, path: str, options: Variables, variables: Variables, vm: TaskVm) -> bool:
    """Whether the task sets it, or says why its value is unknown."""
    value: Any = options
    spec = TYPED[setting]
    try:
        for step in path.split("."):
            value = resolved(value, variables) if isinstance(value, str) else value
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is not None:
            read = _switch if spec.kind is ValueKind.SWITCH else _count
            vm.state(setting, read(resolved(value, variables)))
            if setting == "numCoresPerSocket":
                vm.settings["autoCoresPerSocket"] = False
            return True
    except Unresolved as error:
        vm.settings.pop(setting, None)
        vm.absent[setting] = f"{path}: {error}"
        if isinstance(error, Invalid) and setting in SIZE:
            vm.unreadable = vm.absent[setting]
        return True
    return False


def _read_hardware(options: Variables, variables: Variables, vm: TaskVm, origin: Origin | None) -> None:
    """`latest`, or no version for a new VM, means the host's. Without `origin` an earlier task's stays."""
    hardware = options.get("hardware")
    given = options.get("hardware_version") or (
        hardware.get("version") if isinstance(hardware, Mapping) else None
    )
    try:
        if not given and origin is not Origin.NEW:
            if origin and vm.hardware is None:
                vm.absent[HARDWARE] = str(origin.value)
            return
        text = str(resolved(given, variables)).lower().removeprefix("vmx-") if given else "latest"
        if text == "latest" and vm.hardware is None:
            vm.absent[HARDWARE] = HOST_DECIDES
        elif text != "latest":
            number = _count(text)
            vm.hardware = number if isinstance(number, int) else None
            vm.absent.pop(HARDWARE, None)
    except Unresolved as error:
        vm.absent[HARDWARE] = str(error)


def vm_of_arm(arm: object, variables: Variables, vm: TaskVm) -> None:
    """Apply the variables of the role vm_topology. Raises Unresolved for an invalid topology."""
    given = resolved(arm, variables)
    if not isinstance(given, Mapping):
        raise Unresolved("vm_topology_arm is not a mapping")
    kept = {*_OPTIONS, HARDWARE, "autoCoresPerSocket"} - {"numCPUs", "numCoresPerSocket"}
    vm.absent |= dict.fromkeys(kept, str(Origin.EXISTING.value))
    vm.absent |= dict.fromkeys((*NEW_VM, EXTRA_CONFIG), _NOT_SHOWN)
    shape = given.get("topology")
    try:
        topology = Topology.parse(str(shape))
    except ValueError as error:
        raise Unresolved(str(error)) from error
    vm.state("numCPUs", topology.vcpus)
    vm.state("numCoresPerSocket", topology.cores_per_socket)
    vm.settings["autoCoresPerSocket"] = False
    for field_name, setting, read in (
        ("memory_mb", "memoryMB", _count),
        ("cores_per_numa_node", "coresPerNumaNode", _count),
        ("cpu_hot_add", "cpuHotAddEnabled", _switch),
    ):
        if given.get(field_name) not in (None, "keep", "auto"):
            vm.state(setting, read(given[field_name]))
    reservation = given.get("memory_reservation")
    if reservation == "locked":
        vm.state("memoryReservationLockedToMax", True)
    for name in vm.settings:
        vm.absent.pop(name, None)
