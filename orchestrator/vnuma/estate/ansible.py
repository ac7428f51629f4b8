"""Ansible as a design: playbooks, task files, variables and host_vars that describe VMs.

Reads tasks of community.vmware.vmware_guest, vmware.vmware.vm and vmware.vmware.vm_advanced_settings, and the
variables of this collection's role vm_topology. Nothing is executed, so values known only at run time are not
evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vnuma.domain.vm.estate import Declared, Estate, Unseen
from vnuma.errors import InputError
from vnuma.estate.ansible_files import ARM, HINT, HostVars, Unresolved, host_vars, line_of, resolved, yaml_of
from vnuma.estate.ansible_modules import TaskVm, Variables, shapes_a_vm, vm_of_arm, vm_of_module
from vnuma.estate.design_vm import (
    accepted_in,
    block_end,
    decoded,
    estate_of_designs,
    mapping,
    mappings,
    relative_to_here,
)
from vnuma.estate.vmx import ignored_keys

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
_INCLUDES = {
    prefix + name
    for name in ("include_role", "import_role")
    for prefix in ("", "ansible.builtin.", "ansible.legacy.")
}
_FILES = {
    prefix + name
    for name in ("include_tasks", "import_tasks")
    for prefix in ("", "ansible.builtin.", "ansible.legacy.")
}
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
    found = _Found(path)
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
    told += [Unseen("vm", vm.name, vm.unreadable) for vm in found.vms.values() if vm.unreadable]
    designs = [vm.designed() for vm in found.vms.values() if not vm.unreadable]
    unseen = [*found.unseen, *told, *ignored_keys(designs)]
    return estate_of_designs(path, "ansible", "Ansible", designs, unseen)


def is_ansible(document: object) -> bool:
    """Whether this is a list of plays or tasks."""
    first = document[0] if isinstance(document, list) and document else None
    words = {"hosts", "import_playbook", "tasks", "roles", *_BLOCKS, *_MODULES, *_INCLUDES, *_FILES}
    return isinstance(first, Mapping) and bool(words & first.keys() or _LOOPS[0] in first)


@dataclass
class _Found:
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
        if ARM in variables:
            file, line = at
            vm = self._vm(_name(variables, host), _Place(file, {}), line, 0)
            self._arm(variables[ARM], {**variables, "inventory_hostname": host}, vm)

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
                self._role(variables, play, place)
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
            self.unseen.append(Unseen("vm", named, str(error)))

    def _task(self, task: Mapping[str, Any], place: _Place) -> None:
        self.tasks += 1
        if self.tasks > _MOST_TASKS:
            raise InputError(f"{self.path} has more than {_MOST_TASKS:,} tasks.", fix="Split it.")
        for key in _INCLUDES & task.keys():
            name = str(mapping(task[key]).get("name") or task[key])
            if name in _ROLES:
                self._role(place.variables, task, place)
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
        if not shapes_a_vm(options):
            if name not in self.vms:
                self.idle[name] = Unseen("vm", name, _NO_DESIGN)
            return
        vm = self._vm(name, place, line_of(task), place.end)
        vm_of_module(module, options, place.variables, vm)

    def _role(self, variables: Variables, at: Mapping[str, Any], place: _Place) -> None:
        if ARM in variables:
            host = str(variables.get("inventory_hostname") or "vm_topology")
            vm = self._vm(_name(variables, host), place, line_of(at), place.end)
            self._arm(variables[ARM], variables, vm)

    def _arm(self, arm: object, variables: Variables, vm: TaskVm) -> None:
        try:
            vm_of_arm(arm, variables, vm)
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


def _name(variables: Variables, host: str) -> str:
    name = variables.get("vnuma_vm")
    return str(name) if isinstance(name, str) and "{" not in name else host


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
