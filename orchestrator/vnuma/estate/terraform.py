"""A Terraform or OpenTofu plan or state as `terraform show -json FILE` writes it.

Format: https://developer.hashicorp.com/terraform/internals/json-format. The attributes, their defaults and
units: resource vsphere_virtual_machine of the provider vmware/vsphere.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from vnuma.checks.facts import EXTRA_CONFIG, HARDWARE
from vnuma.checks.fix_as import ATTRIBUTES
from vnuma.domain.vm.estate import HOST_DECIDES, Before, Declared, Estate, NotShown, Unseen
from vnuma.domain.vm.setting import TYPED, Value, is_evidence, is_governed
from vnuma.errors import InputError
from vnuma.estate.api_json import KINDS
from vnuma.estate.design_vm import (
    ACCEPTED_KEY,
    MARK,
    NEW_VM,
    TYPES,
    DesignedVm,
    accepted_in,
    block_end,
    estate_of_designs,
    json_in,
    mappings,
    relative_to_here,
)
from vnuma.estate.vmx import ignored_keys
from vnuma.words.bounded_json import mapping

RESOURCE = "vsphere_virtual_machine"

_MOST_BYTES = 128_000_000
"""A planned VM takes about 12 kB; no plan is larger than this."""

_UNKNOWN = "Terraform knows it only after apply"
_SENSITIVE = "Terraform marks it as sensitive, so vnuma does not read it"
_NOT_SHOWN = NotShown("the plan")
"""For what the provider has no attribute for, and the keys that the code does not set."""
_SHOW = "Write it with: terraform show -json PLAN > FILE (or tofu show -json)."


_DEFAULTS: Mapping[str, Value] = {"numCPUs": 1, "numCoresPerSocket": 1, "memoryMB": 1024}
"""The provider's values if the code sets none; of other settings, vSphere's "not set"."""


@dataclass(frozen=True)
class _Instance:
    """One instance of the resource: its values, and which are sensitive or unknown."""

    address: str
    values: Mapping[str, Any]
    sensitive: Mapping[str, Any]
    unknown: Mapping[str, Any]
    created: bool
    template: Mapping[str, Any] = field(default_factory=dict)
    """The template's values, as Terraform read them before planning; empty: none was read."""
    before: Mapping[str, Any] = field(default_factory=dict)
    """The values before the plan; empty for a new VM, and without changes."""

    @property
    def from_scratch(self) -> bool:
        """Whether it is a new VM with only the code's settings, not those of a template or an OVF."""
        return self.created and not (self.values.get("clone") or self.values.get("ovf_deploy"))

    def why_not(self, name: str) -> str:
        """Why an attribute's value cannot be read; empty if it can."""
        if _marked(self.unknown.get(name)):
            return _UNKNOWN
        return _SENSITIVE if _marked(self.sensitive.get(name)) else ""


def read_terraform(path: Path) -> Estate:
    """The VMs of a plan or state. Raises InputError for another file or format, or without vSphere VMs."""
    document = _document(path)
    planned = "planned_values" in document
    values = mapping(document.get("planned_values" if planned else "values"))
    resources = list(_resources(mapping(values.get("root_module"))))
    changes = {
        str(change.get("address")): mapping(change.get("change"))
        for change in mappings(document.get("resource_changes"))
        if change.get("type") == RESOURCE and not change.get("deposed")
    }
    code = Code(path.parent, mapping(mapping(document.get("configuration")).get("root_module")))
    prior = mapping(mapping(document.get("prior_state")).get("values"))
    templates = {
        str(one["values"].get("id")): mapping(one["values"])
        for one in _resources(mapping(prior.get("root_module")))
        if one.get("type") == RESOURCE and isinstance(one.get("values"), Mapping)
    }
    instances = [
        _instance(resource, changes.get(str(resource.get("address")), {}), templates)
        for resource in resources
        if resource.get("type") == RESOURCE and resource.get("mode") == "managed"
    ]
    if not instances:
        raise _nothing(path, resources)
    vms = [_vm(instance, code) for instance in instances]
    errored = [Unseen("plan", path.name, "planning failed part-way: VMs may be missing")]
    version = str(document.get("terraform_version") or "")[:20]
    return estate_of_designs(
        path,
        "terraform",
        f"Terraform {version} {'plan' if planned else 'state'}",
        vms,
        [*(errored if document.get("errored") else []), *ignored_keys(vms)],
    )


def _cause(error: ValueError) -> str:
    """Why JSON could not be read; a plan as Terraform stores it is a ZIP archive."""
    if isinstance(error, json.JSONDecodeError) and error.pos:
        return f" (broken at line {error.lineno}, column {error.colno})"
    empty = isinstance(error, json.JSONDecodeError | UnicodeDecodeError)
    return ": it is empty, or binary" if empty else f": {error}"


def _document(path: Path) -> Mapping[str, Any]:
    try:
        document = json_in(path, _MOST_BYTES)
    except ValueError as error:
        if path.suffix.lower() == ".tf":
            raise InputError(
                f"{path} is Terraform's configuration; its plan is read.",
                fix=f"Make a plan with: terraform plan -out PLAN. {_SHOW}",
            ) from error
        raise InputError(
            f"{path} is not a Terraform plan or state in JSON{_cause(error)}.", fix=_SHOW
        ) from error
    found = mapping(document)
    if "encrypted_data" in found or "encryption_version" in found:
        raise InputError(f"{path} is encrypted.", fix=_SHOW)
    if "lineage" in found or "serial" in found:
        raise InputError(f"{path} is Terraform's own state file, whose format is internal.", fix=_SHOW)
    number = str(found.get("format_version", ""))
    if not number or not {"planned_values", "values"} & found.keys():
        raise InputError(f"{path} is JSON, but not of a kind that is read.", fix=KINDS)
    if number.split(".")[0] not in {"0", "1"}:
        raise InputError(
            f"{path} has format {number[:20]}; this vnuma reads Terraform's format 1.",
            fix="Use a newer vnuma, or an older Terraform.",
        )
    return found


def _nothing(path: Path, resources: list[Mapping[str, Any]]) -> InputError:
    kinds = Counter(str(resource.get("type")) for resource in resources)
    has = ", ".join(kind for kind, _ in kinds.most_common(3)) or "no resources"
    return InputError(
        f"{path} contains nothing of vSphere to check: no {RESOURCE} (it has {has}).",
        fix="Name the plan of the configuration that creates the VMs.",
    )


def _resources(module: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Resources of a module and its child modules."""
    yield from mappings(module.get("resources"))
    for child in mappings(module.get("child_modules")):
        yield from _resources(child)


def _instance(
    resource: Mapping[str, Any], change: Mapping[str, Any], templates: Mapping[str, Mapping[str, Any]]
) -> _Instance:
    values = mapping(resource.get("values"))
    clone = next(iter(mappings(values.get("clone"))), {})
    sensitive = {**mapping(resource.get("sensitive_values")), **mapping(change.get("after_sensitive"))}
    return _Instance(
        address=str(resource.get("address")),
        values=values,
        sensitive=sensitive,
        unknown=mapping(change.get("after_unknown")),
        created="create" in (change.get("actions") or ()),
        template=templates.get(str(clone.get("template_uuid")), {}),
        before=mapping(change.get("before")),
    )


def _vm(instance: _Instance, code: Code) -> DesignedVm:
    before = _Instance(instance.address, instance.before, instance.sensitive, {}, created=False)
    prior = _designed(before, Code(Path(), {})).facts("") if instance.before else None
    now = Before(prior.facts.settings, prior.facts.hardware_version, tuple(prior.absent)) if prior else None
    return replace(_designed(instance, code), before=now)


def _designed(instance: _Instance, code: Code) -> DesignedVm:
    settings: dict[str, Value] = dict(NEW_VM) if instance.from_scratch else {}
    absent: dict[str, str] = {} if instance.from_scratch else dict.fromkeys(NEW_VM, _NOT_SHOWN)
    for setting, name in ATTRIBUTES.items():
        if setting == "coresPerNumaNode":
            continue
        value, why, spec = instance.values.get(name), instance.why_not(name), TYPED[setting]
        if not why and value is not None and type(value) is not TYPES[spec.kind]:
            why = f"{name} is {str(value)[:20]!r}, which Terraform's provider never writes"
        if why:
            absent[setting] = why
        else:
            settings[setting] = _DEFAULTS.get(setting, spec.unset) if value is None else value
    # The provider applies memory_reservation_locked_to_max only where memory_reservation is the memory.
    if settings.get("memoryReservationLockedToMax") and {"memoryMB", "memoryReservation"} <= settings.keys():
        settings["memoryReservationLockedToMax"] = settings["memoryReservation"] == settings["memoryMB"]
    _read_topology(instance, settings, absent)
    _read_keys(instance, settings, absent)
    hardware = instance.values.get("hardware_version")
    if type(hardware) is not int and instance.created:
        hardware = instance.template.get("hardware_version")
    if type(hardware) is not int:
        why = instance.why_not("hardware_version") or "the design does not set hardware_version"
        absent[HARDWARE] = HOST_DECIDES if instance.from_scratch else why
    known_name = not instance.why_not("name") and instance.values.get("name")
    # Without its code, a plan has accepted findings in a key of extra_config.
    accepted = mapping(instance.values.get("extra_config")).get(ACCEPTED_KEY)
    return DesignedVm(
        address=instance.address,
        name=str(known_name or instance.address),
        hardware=hardware if type(hardware) is int else None,
        settings=settings,
        absent=absent,
        guest_id=str(instance.values.get("guest_id") or ""),
        declared=code.declared(instance.address),
        accepted=(
            *code.accepted(instance.address),
            *((accepted,) if isinstance(accepted, str) and accepted else ()),
        ),
    )


def _read_topology(instance: _Instance, settings: dict[str, Value], absent: dict[str, str]) -> None:
    """0 means that vSphere chooses at power-on. The provider has cores per NUMA node since 2.16."""
    if "numCoresPerSocket" in settings:
        settings["autoCoresPerSocket"] = settings["numCoresPerSocket"] == 0
    else:
        absent["autoCoresPerSocket"] = absent["numCoresPerSocket"]
    name = ATTRIBUTES["coresPerNumaNode"]
    size, why = instance.values.get(name), instance.why_not(name)
    if not why and type(size) is not int:
        return
    for setting in ("coresPerNumaNode", "autoCoresPerNumaNode"):
        settings.pop(setting, None)
        absent.pop(setting, None)
    if why:
        absent |= dict.fromkeys(("coresPerNumaNode", "autoCoresPerNumaNode"), why)
    else:
        settings |= {"coresPerNumaNode": size, "autoCoresPerNumaNode": size == 0}


def _read_keys(instance: _Instance, settings: dict[str, Value], absent: dict[str, str]) -> None:
    """extraConfig keys from the code; a new VM without a template has no others."""
    sensitive, unread = instance.sensitive.get("extra_config"), instance.unknown.get("extra_config")
    by_key = isinstance(sensitive, dict) and unread is not True
    why = "" if by_key else instance.why_not("extra_config")
    if why or not instance.from_scratch:
        absent[EXTRA_CONFIG] = why or _NOT_SHOWN
    hidden = sensitive if isinstance(sensitive, dict) else {}
    unknown = mapping(instance.unknown.get("extra_config"))
    for name, value in mapping(instance.values.get("extra_config")).items():
        if why or not (is_governed(name) or is_evidence(name)):
            continue
        if hidden.get(name) or unknown.get(name):
            absent[EXTRA_CONFIG] = f"{name}: {_SENSITIVE if hidden.get(name) else _UNKNOWN}"
        elif value not in (None, ""):
            settings[name] = str(value)


def _marked(mark: object) -> bool:
    """Whether Terraform marks an attribute or a part of it."""
    if isinstance(mark, dict):
        return any(map(_marked, mark.values()))
    return any(map(_marked, mark)) if isinstance(mark, list) else mark is True


_MOST_FILES = 500
_MOST_CODE_BYTES = 1_000_000
_RESOURCE_LINE = re.compile(r'^[ \t]*resource[ \t]+"([\w-]{1,200})"[ \t]+"([\w-]{1,200})"', re.M)
_BLOCK = re.compile(r"^(resource|data|module|variable|output|locals|provider|terraform|moved|import|check)\b")
_INDEX = re.compile(r'\[(?:\d+|"(?:[^"\\]|\\.)*")\]')


class Code:
    """The configuration next to a plan: its folder, and modules in folders below."""

    def __init__(self, folder: Path, root: Mapping[str, Any]) -> None:
        self._folder, self._root = folder, root
        self._lines = cache(_resources_in)

    def declared(self, address: str) -> Declared | None:
        """File and line of the resource at this address; None if no .tf file here has it."""
        found = self._find(address)
        return Declared(relative_to_here(found[0], self._folder), found[1]) if found else None

    def accepted(self, address: str) -> tuple[str, ...]:
        """The accepted findings in the resource's block, and in the comments just above it."""
        found = self._find(address)
        lines = _text(found[0]).splitlines() if found else []
        if not found or not any(MARK in line for line in lines):
            return ()
        later = range(found[1] + 1, len(lines) + 1)
        following = next((number for number in later if _BLOCK.match(lines[number - 1])), 0)
        return accepted_in(lines, found[1], block_end(lines, following))

    def _find(self, address: str) -> tuple[Path, int] | None:
        parts = _INDEX.sub("", address).split(".")
        try:
            folder = self._module(parts[1:-2:2])
            return self._lines(folder).get((parts[-2], parts[-1])) if folder else None
        except (IndexError, OSError, RuntimeError, ValueError):  # no address, or no path (pathlib's three)
            return None

    def _module(self, calls: list[str]) -> Path | None:
        """The folder of a module; None unless it is below the plan."""
        folder, module = self._folder, self._root
        for call in calls:
            found = mapping(mapping(module.get("module_calls")).get(call))
            source = found.get("source")
            if not isinstance(source, str) or not source.startswith("./"):
                return None
            folder, module = folder / source, mapping(found.get("module"))
        inside = folder.resolve().is_relative_to(self._folder.resolve())
        return self._folder / folder.resolve().relative_to(self._folder.resolve()) if inside else None


@lru_cache(maxsize=8)
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _resources_in(folder: Path) -> dict[tuple[str, str], tuple[Path, int]]:
    """Each resource of a folder's .tf files, with file and line. An unreadable file has none."""
    found: dict[tuple[str, str], tuple[Path, int]] = {}
    for file in sorted(folder.glob("*.tf"))[:_MOST_FILES]:
        try:
            if not file.is_file() or file.stat().st_size > _MOST_CODE_BYTES:
                continue
            text = _text(file)
        except OSError:
            continue  # the findings have no line then, as for modules elsewhere
        for match in _RESOURCE_LINE.finditer(text):
            found.setdefault((match[1], match[2]), (file, text.count("\n", 0, match.start(1)) + 1))
    return found
