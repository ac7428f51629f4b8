"""VMs in vSphere's own form, as govc writes them: `govc vm.info -json` and `govc object.collect -json`.

Field names: VirtualMachineConfigInfo of VMware's API reference. govc before 0.30 writes them with a capital.
A VM that vCenter shows whole has a changeVersion; a field that it leaves out is then at its default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vnuma.checks.facts import DEFAULTS, EXTRA_CONFIG, HARDWARE
from vnuma.domain.vm.estate import Estate, NotShown, Unread, Unseen
from vnuma.domain.vm.setting import TYPED, VIRTUAL_NUMA, Value, ValueKind, is_evidence, is_governed
from vnuma.errors import InputError, reading
from vnuma.estate.design_vm import (
    SIZE,
    TYPES,
    DesignedVm,
    estate_of_designs,
    json_in,
    mappings,
)
from vnuma.words.bounded_json import mapping

_MOST_BYTES = 128_000_000
_HEAD = 4096
_VMS = "virtualMachines"
_LEFT_OUT = "the file does not show it"
_NOT_SHOWN = NotShown("the file")


def is_api_json(path: Path) -> bool:
    """Whether the file begins like govc's JSON rather than a Terraform plan."""
    with reading(path), path.open("rb") as file:
        head = file.read(_HEAD).lstrip()
    return head.startswith(b"[") or _VMS.lower().encode() in head.lower()


def read_api_json(path: Path) -> Estate:
    """The VMs of the file. Raises InputError for another file."""
    try:
        document = json_in(path, _MOST_BYTES)
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}.", fix=KINDS) from error
    found = list(_virtual_machines(_lowered(document)))
    if not found:
        raise InputError(f"{path} is JSON, but describes no VM.", fix=KINDS)
    designs = []
    for number, vm in enumerate(found, start=1):
        config = mapping(vm.get("config"))
        name = str(vm.get("name") or config.get("name") or f"VM {number}")
        if config.get("template") is not True:
            designs.append(_designed(name, str(config.get("instanceUuid") or name), config))
    return estate_of_designs(path, "api", "vSphere API as JSON", designs)


KINDS = (
    "JSON that is read: `terraform show -json PLAN`, `govc vm.info -json`, `govc object.collect -json VM`; "
    "a snapshot of vnuma with --snapshot."
)


def _lowered(node: Any) -> Any:
    """The document with each field's first letter in lower case, and values without their type's name."""
    if isinstance(node, list):
        return [_lowered(one) for one in node]
    if not isinstance(node, dict):
        return node
    if "_value" in node:
        return _lowered(node["_value"])
    return {name[:1].lower() + name[1:]: _lowered(value) for name, value in node.items()}


def _virtual_machines(document: Any) -> Iterator[Mapping[str, Any]]:
    """Objects with their properties."""
    if isinstance(document, Mapping):
        yield from mappings(document.get(_VMS))
        return
    changes = mappings(document)
    if any("changeSet" in one for one in changes):
        yield from (_of_properties(mappings(one.get("changeSet"))) for one in changes)
    elif any("name" in one and "val" in one for one in changes):
        yield _of_properties(changes)


def _of_properties(changes: list[Mapping[str, Any]]) -> dict[str, Any]:
    """An object of dotted properties: config.hardware.numCPU."""
    found: dict[str, Any] = {}
    for change in changes:
        *parents, leaf = str(change.get("name")).split(".")
        at = found
        for step in parents:
            below = at.setdefault(step, {})
            at = below if isinstance(below, dict) else {}
        at[leaf] = change.get("val")
    return found


def _designed(name: str, address: str, config: Mapping[str, Any]) -> DesignedVm | Unseen:
    """The VM of a VirtualMachineConfigInfo, or why it cannot be read."""
    whole = "changeVersion" in config
    version = re.fullmatch(r"vmx-([0-9]{1,2})", str(config.get("version")), re.ASCII)
    hardware = int(version[1]) if version else None
    settings: dict[str, Value] = {}
    absent: dict[str, str] = {}
    for setting, spec in TYPED.items():
        value = _at(config, spec.path)
        if value is None and not whole:
            absent[setting] = _NOT_SHOWN if setting in DEFAULTS else _LEFT_OUT
        elif value is None:
            settings[setting] = spec.unset
        elif spec.kind in TYPES and type(value) is not TYPES[spec.kind]:
            if setting in SIZE:
                return Unread("vm", name, f"{spec.path} is {str(value)[:20]!r}, not a number")
            absent[setting] = f"{spec.path} is {str(value)[:20]!r}, which is not a valid value"
        else:
            settings[setting] = _value(spec.kind, value)
    if missing := sorted(SIZE - {"numCoresPerSocket"} - settings.keys()):
        return Unread("vm", name, f"the file does not show {' and '.join(missing)}")
    if hardware is None:
        absent[HARDWARE] = _LEFT_OUT
    keys = {str(one.get("key")): str(one.get("value")) for one in mappings(config.get("extraConfig"))}
    settings |= {key: text for key, text in keys.items() if text and (is_governed(key) or is_evidence(key))}
    if "extraConfig" not in config:
        absent[EXTRA_CONFIG] = _NOT_SHOWN
    elif (hardware or 0) >= VIRTUAL_NUMA.hardware and settings.get("autoCoresPerSocket") is None:
        # Without the field, as in dumps of older tools, the key says whether somebody chose a number.
        automatic = not any(key.lower() == "cpuid.corespersocket" for key in keys)
        settings["autoCoresPerSocket"] = automatic
        absent.pop("autoCoresPerSocket", None)
    if settings.get("autoCoresPerSocket") is True:
        settings["numCoresPerSocket"] = 0
        absent.pop("numCoresPerSocket", None)
    return DesignedVm(
        address=address,
        name=name,
        hardware=hardware,
        settings=settings,
        absent=absent,
        guest_id=str(config.get("guestId") or ""),
    )


def _at(config: Mapping[str, Any], path: str) -> Any:
    node: Any = config
    for step in path.split("."):
        node = node.get(step) if isinstance(node, Mapping) else None
    return node


def _value(kind: ValueKind, value: Any) -> Value:
    if kind is ValueKind.CPUS:
        numbers = mapping(value).get("affinitySet") or ()
        return tuple(sorted(one for one in numbers if type(one) is int))
    if kind is ValueKind.SHARES:
        level = str(mapping(value).get("level") or "normal")
        shares = mapping(value).get("shares")
        return shares if level == "custom" and type(shares) is int else level
    known: Value = value
    return known
