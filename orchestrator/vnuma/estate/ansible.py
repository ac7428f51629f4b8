"""Ansible as a design: playbooks, task files, variables and host_vars that describe VMs.

Reads tasks of community.vmware.vmware_guest, vmware.vmware.vm and vmware.vmware.vm_advanced_settings, and the
variables of this collection's role vm_topology. Nothing is executed, so values known only at run time are not
evaluated. Options, units and defaults of new VMs:
https://docs.ansible.com/ansible/latest/collections/community/vmware/vmware_guest_module.html and
https://docs.ansible.com/ansible/latest/collections/vmware/vmware/vm_module.html.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

from vnuma.checks.facts import EXTRA_CONFIG, HARDWARE
from vnuma.domain.topology.topology import Topology
from vnuma.domain.vm.estate import HOST_DECIDES, Declared, Estate, NotShown, Unread, Unseen
from vnuma.domain.vm.setting import AUTOMATIC, TYPED, Value, ValueKind, is_evidence, is_governed
from vnuma.errors import InputError
from vnuma.estate.design_vm import (
    NEW_VM,
    SIZE,
    DesignedVm,
    accepted_in,
    block_end,
    bounded_bytes,
    decoded,
    estate_of_designs,
    mappings,
    relative_to_here,
)
from vnuma.estate.vmx import ignored_keys
from vnuma.words.bounded_json import mapping
from vnuma.words.bounded_yaml import NotYaml, read_yaml

ARM = "vm_topology_arm"
HINT = "Name a playbook, a file of tasks or variables, or a host_vars folder."

_MOST_BYTES = 1_000_000
_MOST_FILES = 2_000


@dataclass(frozen=True)
class HostVars:
    """A host's variables, and the file and line where they describe its VM.

    `contradiction` says how two of its files differ about the VM; empty if they do not.
    """

    host: str
    variables: Mapping[str, Any]
    at: tuple[Path, int]
    contradiction: str = ""


def yaml_of(path: Path) -> Any:
    """The document of a YAML file. Raises InputError."""
    text = decoded(bounded_bytes(path, _MOST_BYTES, "a file of Ansible's"))
    if text.startswith("$ANSIBLE_VAULT"):
        raise InputError(f"{path} is encrypted with Ansible Vault, so it is not read.", fix=HINT)
    try:
        return read_yaml(text)
    except NotYaml as error:
        raise InputError(f"{path} is not YAML: {error} (line {error.line}).", fix=HINT) from error


def host_vars(folder: Path) -> Iterator[HostVars]:
    """Each host's variables, from HOST.yml or from HOST's files, the last by name winning.

    https://docs.ansible.com/ansible/latest/inventory_guide/intro_inventory.html#organizing-host-and-group-variables
    """
    files: dict[str, list[Path]] = {}
    for file in sorted(folder.rglob("*"))[:_MOST_FILES]:
        inside = file.relative_to(folder)
        if file.suffix in {".yml", ".yaml"} and file.is_file() and len(inside.parts) <= 2:
            files.setdefault(inside.parts[0] if len(inside.parts) == 2 else file.stem, []).append(file)
    for host, some in files.items():
        read = [(file, document) for file in some if isinstance(document := yaml_of(file), Mapping)]
        merged = {name: value for _, document in read for name, value in document.items()}
        stated = [(file, document) for file, document in read if ARM in document]
        at = [(file, line_of(document, ARM)) for file, document in stated]
        yield HostVars(host, merged, (at or [(some[0], 1)])[-1], _contradiction(folder, stated))


def _contradiction(folder: Path, stated: Sequence[tuple[Path, Mapping[str, Any]]]) -> str:
    if all(document[ARM] == stated[0][1][ARM] for _, document in stated):
        return ""
    places = (f"{file.relative_to(folder).as_posix()}:{line_of(document, ARM)}" for file, document in stated)
    return f"{ARM} is not the same in {' and '.join(places)}: the last is checked"


def line_of(item: object, key: str | None = None) -> int:
    """The line at which a mapping, or one of its keys, begins."""
    position = getattr(item, "lc", None)
    if position is None:
        return 1
    if key is not None and position.data and key in position.data:
        return int(position.data[key][0]) + 1
    return int(position.line) + 1


_DEEPEST_TEMPLATE = 20
_LONGEST = 2_000
_ENVIRONMENT = Environment(autoescape=False)  # only parses here


class Unresolved(ValueError):
    """A value known only when Ansible runs; the message says what is missing."""


def resolved(value: object, variables: Mapping[str, Any], depth: int = 0) -> Any:
    """The value with its templates resolved. Raises Unresolved."""
    if depth > _DEEPEST_TEMPLATE:
        raise Unresolved("its variables refer to each other")
    if isinstance(value, Mapping):
        return {str(key): resolved(item, variables, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved(item, variables, depth + 1) for item in value]
    if not isinstance(value, str) or "{" not in value:
        return value
    if len(value) > _LONGEST:
        raise Unresolved("its template is too long")
    try:
        parts = [part for output in _ENVIRONMENT.parse(value).body for part in _parts(output)]
    except (TemplateSyntaxError, RecursionError) as error:
        raise Unresolved(f"its template cannot be read: {value[:40]}") from error
    found = [_value(part, variables, depth) for part in parts]
    return found[0] if len(found) == 1 else "".join(map(str, found))


def _parts(output: nodes.Node) -> list[nodes.Expr]:
    if not isinstance(output, nodes.Output):
        raise Unresolved("its template has statements")
    return output.nodes


def _value(node: nodes.Node, variables: Mapping[str, Any], depth: int) -> Any:
    """One expression. Raises Unresolved for anything unknown."""

    def of(inner: nodes.Node) -> Any:
        return _value(inner, variables, depth)

    match node:
        case nodes.TemplateData():
            return node.data
        case nodes.Const():
            return node.value
        case nodes.Name(name="omit"):
            raise Unresolved("the option is omitted")
        case nodes.Name():
            if node.name not in variables:
                raise Unresolved(f"the variable {node.name} is not defined here")
            return resolved(variables[node.name], variables, depth + 1)
        case nodes.Getattr():
            return _part(of(node.node), node.attr)
        case nodes.Getitem():
            return _part(of(node.node), of(node.arg))
        case nodes.Filter() if node.node is not None:
            return _filtered(node, of)
        case nodes.Neg():
            return -_numeric(of(node.node))
        case nodes.BinExpr() if type(node) in _ARITHMETIC:
            return _ARITHMETIC[type(node)](_numeric(of(node.left)), _numeric(of(node.right)))
    raise Unresolved("its template needs a value that only Ansible knows")


def _part(whole: object, key: object) -> Any:
    if isinstance(whole, Mapping) and key in whole:
        return whole[key]
    if isinstance(whole, list) and isinstance(key, int) and -len(whole) <= key < len(whole):
        return whole[key]
    raise Unresolved(f"{str(key)[:40]} is not defined here")


def _filtered(node: nodes.Filter, of: Callable[[nodes.Node], Any]) -> Any:
    if node.name in {"default", "d"} and node.args and node.node:
        try:
            return of(node.node)
        except Unresolved as error:
            if isinstance(node.args[0], nodes.Name) and node.args[0].name == "omit":
                raise Unresolved(f"{error}, and the option is omitted without it") from error
            return of(node.args[0])
    filters: Mapping[str, Callable[[Any], Any]] = {
        "int": lambda value: int(_numeric(value)),
        "string": str,
        "bool": lambda value: str(value).strip().lower() in {"true", "yes", "on", "1"},
        "lower": lambda value: str(value).lower(),
        "upper": lambda value: str(value).upper(),
        "trim": lambda value: str(value).strip(),
    }
    if node.name not in filters or node.args or node.node is None:
        raise Unresolved(f"the filter {node.name} needs Ansible")
    return filters[node.name](of(node.node))


def _numeric(value: object) -> float | int:
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value) if "." in value else int(value[:18])
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e12:
        raise Unresolved(f"{str(value)[:20]!r} is not a number")
    return value


def _divided(left: float, right: float) -> float:
    if not right:
        raise Unresolved("it divides by zero")
    return left / right


_ARITHMETIC: Mapping[type, Callable[[float, float], float]] = {
    nodes.Add: lambda left, right: left + right,
    nodes.Sub: lambda left, right: left - right,
    nodes.Mul: lambda left, right: left * right,
    nodes.Div: _divided,
    nodes.FloorDiv: lambda left, right: int(_divided(left, right)),
}


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


_MOST_VMS = 20_000
_MOST_TASKS = 100_000
"""With each turn of a loop and each file that is included: several for each of the most VMs."""
_DEEPEST = 8

_MODULES = {
    **dict.fromkeys(("community.vmware.vmware_guest", "vmware_guest"), "guest"),
    "vmware.vmware.vm": "vm",
    "vmware.vmware.vm_advanced_settings": "keys",
}
_ROLES = {"vnuma.vnuma.vm_topology", "vm_topology"}
_INCLUDES, _FILES = (
    {prefix + name for name in names for prefix in ("", "ansible.builtin.", "ansible.legacy.")}
    for names in (("include_role", "import_role"), ("include_tasks", "import_tasks"))
)
_UNREAD_MODULES = frozenset(
    (
        *("vcenter_vm", "vcenter_vm_hardware", "vcenter_vm_hardware_cpu", "vcenter_vm_hardware_memory"),
        *("vcenter_vmtemplate_libraryitems", "vcenter_ovf_libraryitem", "vmware_deploy_ovf"),
        *("vmware_content_deploy_template", "vmware_content_deploy_ovf_template"),
        *("deploy_folder_template", "deploy_content_library_template", "deploy_content_library_ovf"),
    )
)
"""Modules of other collections that make or shape VMs too, without their collection."""
_NO_DESIGN = "no task here makes it or changes its hardware, so there is nothing to check"
_LOOPS = ("loop", "with_items", "with_list", "ansible.builtin.loop")
_BLOCKS = ("block", "rescue", "always")
_TASKS = ("pre_tasks", "tasks", "post_tasks", "handlers")


def read_ansible(path: Path) -> Estate:
    """The VMs of a playbook, a file of tasks or variables, or a folder of host_vars. Raises InputError."""
    found = _TaskVms(path)
    if path.is_dir():
        for one in host_vars(path):
            found.add_host(one)
            found.add_variables(one.host, one.variables, one.at)
    else:
        found.add_document(yaml_of(path), path)
    found.unseen += [one for name, one in found.idle.items() if name not in found.vms]
    if not found.vms and not found.unseen:
        raise InputError(f"{path} has nothing of vSphere to check: no task or variable makes a VM.", fix=HINT)
    told = [Unseen("vm", vm.name, why) for vm in found.vms.values() for why in vm.contradictions]
    told += [Unread("vm", vm.name, vm.unreadable) for vm in found.vms.values() if vm.unreadable]
    designs = [vm.designed() for vm in found.vms.values() if not vm.unreadable]
    unseen = [*found.unseen, *told, *ignored_keys(designs)]
    return estate_of_designs(path, "ansible", "Ansible", designs, unseen)


def is_ansible(document: object) -> bool:
    """Whether this is a list of plays or tasks."""
    first = document[0] if isinstance(document, list) and document else None
    words = {"hosts", "import_playbook", "tasks", "roles", *_BLOCKS, *_MODULES, *_INCLUDES, *_FILES}
    return isinstance(first, Mapping) and bool(words & first.keys() or _LOOPS[0] in first)


@dataclass
class _TaskVms:
    """What was found so far: VMs by name, and what could not be read."""

    path: Path
    vms: dict[str, TaskVm] = field(default_factory=dict)
    unseen: list[Unseen] = field(default_factory=list)
    idle: dict[str, Unseen] = field(default_factory=dict)
    """VMs that a task names without changing their hardware."""
    tasks: int = 0
    files: dict[tuple[Path, str], tuple[Path, Sequence[Mapping[str, Any]]] | None] = field(
        default_factory=dict
    )
    """Each included file with its tasks, by the folder and name that include it; None: not found."""

    @property
    def folder(self) -> Path:
        """The design's folder: nothing outside is read."""
        return self.path if self.path.is_dir() else self.path.parent

    def add_document(self, document: object, file: Path) -> None:
        """Plays, tasks or variables."""
        if isinstance(document, Mapping):
            host = str(document.get("vnuma_vm") or file.stem)
            self.add_variables(host, document, (file, line_of(document, ARM)))
            return
        for play in mappings(document):
            if "hosts" in play:
                for variables in self._of_play(play):
                    self._play(play, _Place(file, variables))
            elif "import_playbook" in play:
                self._unread("playbook", play["import_playbook"])
        tasks = [one for one in mappings(document) if "hosts" not in one and "import_playbook" not in one]
        self._tasks(tasks, _Place(file, {}))

    def add_host(self, one: HostVars) -> None:
        """Record where two files of a host's variables differ."""
        if one.contradiction and (told := Unseen("vm", one.host, one.contradiction)) not in self.unseen:
            self.unseen.append(told)

    def add_variables(self, host: str, variables: Variables, at: tuple[Path, int]) -> None:
        """Add a VM from its host's variables."""
        self._role({**variables, "inventory_hostname": host}, at[1], _Place(at[0], {}))

    def _of_play(self, play: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The variables of each host in host_vars next to the playbook; once without them, otherwise."""
        common = self._group_vars() | dict(mapping(play.get("vars"))) | self._vars_files(play)
        pattern, beside = str(play["hosts"]), self.folder / "host_vars"
        remote = beside.is_dir() and pattern not in {"localhost", "127.0.0.1"}
        hosts = list(host_vars(beside)) if remote else []
        named = [one for one in hosts if one.host == pattern] or hosts
        for one in named:
            self.add_host(one)
            yield {**self._group_vars(), **one.variables, **common, "inventory_hostname": one.host}
        if not named:
            yield common

    def _group_vars(self) -> dict[str, Any]:
        for name in ("all.yml", "all.yaml"):
            file = self.folder / "group_vars" / name
            if file.is_file():
                return dict(mapping(yaml_of(file)))
        return {}

    def _vars_files(self, play: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in play.get("vars_files") or []:
            file = self._below(name)
            if file is None:
                self._unread("file of variables", name)
            else:
                found |= mapping(yaml_of(file))
        return found

    def _below(self, name: object, beside: Path | None = None) -> Path | None:
        """A file below the design's folder, by its place there or beside another file; None for any other."""
        for folder in [beside.parent, self.folder] if beside else [self.folder]:
            file = folder / str(name)
            if file.resolve().is_relative_to(self.folder.resolve()) and file.is_file():
                return file
        return None

    def _unread(self, what: str, name: object) -> None:
        why = f"the {what} is not read: its VMs and values may be missing"
        if (one := Unseen("plan", str(name)[:80], why)) not in self.unseen:
            self.unseen.append(one)

    def _play(self, play: Mapping[str, Any], place: _Place) -> None:
        for role in play.get("roles") or []:
            named = role if isinstance(role, Mapping) else {"role": role}
            name = str(named.get("role") or named.get("name"))
            if name in _ROLES:
                variables = {**place.variables, **named, **mapping(named.get("vars"))}
                self._role(variables, line_of(play), place)
            else:
                self._unread("role", name)
        for key in _TASKS:
            self._tasks(mappings(play.get(key)), place)

    def _tasks(self, tasks: Sequence[Mapping[str, Any]], place: _Place, depth: int = 0) -> None:
        if depth > _DEEPEST:
            return
        for number, task in enumerate(tasks):
            after = line_of(tasks[number + 1]) if number + 1 < len(tasks) else place.end
            here = replace(place, variables={**place.variables, **mapping(task.get("vars"))}, end=after)
            for key in _BLOCKS:
                self._tasks(mappings(task.get(key)), here, depth + 1)
            for variables in self._turns(task, here):
                self._task(task, replace(here, variables=variables))

    def _turns(self, task: Mapping[str, Any], place: _Place) -> Iterator[dict[str, Any]]:
        """The variables of each iteration of a task's loop."""
        loop = next((task[key] for key in _LOOPS if key in task), None)
        if loop is None or not {*_MODULES, *_INCLUDES, *_FILES} & task.keys():
            yield dict(place.variables)
            return
        name = str(mapping(task.get("loop_control")).get("loop_var") or "item")
        try:
            items = resolved(loop, place.variables)
            for item in items if isinstance(items, list) else []:
                yield {**place.variables, name: item}
        except Unresolved as error:
            if any(mapping(task.get(key)).get("state") == "absent" for key in _MODULES):
                return
            named = str(task.get("name") or f"line {line_of(task)}")[:80]
            self.unseen.append(Unread("vm", named, str(error)))

    def _task(self, task: Mapping[str, Any], place: _Place) -> None:
        self.tasks += 1
        if self.tasks > _MOST_TASKS:
            raise InputError(f"{self.path} has more than {_MOST_TASKS:,} tasks.", fix="Split it.")
        for key in _INCLUDES & task.keys():
            name = str(mapping(task[key]).get("name") or task[key])
            if name in _ROLES:
                self._role(place.variables, line_of(task), place)
            else:
                self._unread("role", name)
        for key in _FILES & task.keys():
            self._included(task[key], place)
        for key in task:
            if str(key).rpartition(".")[2] in _UNREAD_MODULES:
                self._unread(f"task of {key}", task.get("name") or f"line {line_of(task)}")
        for key in _MODULES.keys() & task.keys():
            options = {**mapping(task.get("args")), **mapping(task[key])}
            if not isinstance(task[key], Mapping) and not options:
                self._unread("task, since its options are not a mapping,", task.get("name") or key)
            elif str(options.get("state", "present")) != "absent":
                self._module(_MODULES[key], options, task, place)

    def _included(self, named: object, place: _Place) -> None:
        """The tasks of another file below the design's folder, which may include more."""
        at = place.file.parent, str(mapping(named).get("file", named))
        if at not in self.files:
            file = self._below(at[1], place.file)
            self.files[at] = None
            with suppress(InputError):  # in a vault, or not YAML: named below, and the other tasks count
                self.files[at] = (file, mappings(yaml_of(file))) if file else None
        found = self.files[at]
        if found is None or place.depth > _DEEPEST:
            self._unread("file of tasks", at[1])
        else:
            self._tasks(found[1], _Place(found[0], place.variables, depth=place.depth + 1))

    def _module(
        self, module: str, options: Mapping[str, Any], task: Mapping[str, Any], place: _Place
    ) -> None:
        name = _name_of(options, place.variables)
        if module == "keys":
            if name in self.vms:
                self.vms[name].at = self._at(place, line_of(task))
                try:
                    self.vms[name].set_keys(resolved(options.get("settings") or {}, place.variables))
                except (Unresolved, AttributeError) as error:
                    self.unseen.append(Unseen("vm", name, f"settings: {error}"))
            return
        if not any(options.get(one) for one in _SHAPING):  # it powers a VM on, or renames it
            if name not in self.vms:
                self.idle[name] = Unseen("vm", name, _NO_DESIGN)
            return
        vm = self._vm(name, place, line_of(task), place.end)
        vm_of_module(module, options, place.variables, vm)

    def _role(self, variables: Variables, line: int, place: _Place) -> None:
        """The VM of the role's variables, if they have an arm."""
        if ARM not in variables:
            return
        named, host = variables.get("vnuma_vm"), str(variables.get("inventory_hostname") or "vm_topology")
        known = isinstance(named, str) and "{" not in named
        vm = self._vm(str(named) if known else host, place, line, place.end)
        try:
            vm_of_arm(variables[ARM], variables, vm)
        except Unresolved as error:
            del self.vms[vm.name]
            self.unseen.append(Unseen("vm", vm.name, f"vm_topology_arm: {error}"))

    def _at(self, place: _Place, line: int) -> str:
        return f"{relative_to_here(place.file, self.folder)}:{line}"

    def _vm(self, name: str, place: _Place, line: int, end: int) -> TaskVm:
        """The VM of that name, which several tasks may shape one after another."""
        if len(self.vms) >= _MOST_VMS:
            raise InputError(f"{self.path} makes more than {_MOST_VMS:,} VMs.", fix="Split it.")
        lines = decoded(place.file.read_bytes()).splitlines()
        declared = Declared(relative_to_here(place.file, self.folder), line)
        known = self.vms.setdefault(name, TaskVm(name, declared))
        known.at = self._at(place, line)
        known.accepted += accepted_in(lines, line, block_end(lines, end))
        return known


@dataclass(frozen=True)
class _Place:
    """A task's place: its file, the variables there, and the next task's line (0: none)."""

    file: Path
    variables: Variables
    end: int = 0
    depth: int = 0
    """How many files of tasks include one another."""


def _name_of(options: Mapping[str, Any], variables: Variables) -> str:
    """The VM's name; a part that only a run can resolve stays a template."""
    known = (options[key] for key in ("name", "uuid", "moid") if options.get(key))
    given = next(known, "a VM without a name")
    try:
        return str(resolved(given, variables))
    except Unresolved:
        return _TEMPLATE.sub(lambda part: _known(part[0], variables), str(given)[:_LONGEST_NAME])


_TEMPLATE = re.compile(r"\{\{.*?\}\}")
_LONGEST_NAME = 80


def _known(part: str, variables: Variables) -> str:
    """A template of a name, if it can be resolved: two VMs of a loop keep names of their own."""
    try:
        return str(resolved(part, variables))
    except Unresolved:
        return part
