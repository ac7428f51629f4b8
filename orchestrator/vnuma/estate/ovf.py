"""OVF and OVA templates: the virtual hardware of a deployment, from the descriptor alone.

DMTF DSP0243 (OVF 1.1) and DSP8023 define sections and items; CIM's ResourceType 3 is processors, 4 memory. An
item's Reservation and Limit (CIM_ResourceAllocationSettingData) are in its AllocationUnits, those of
processors in hertz. VMware's namespace http://www.vmware.com/schema/ovf adds CoresPerSocket, Config and
ExtraConfig.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET
from xml.parsers import expat

from vnuma.checks.facts import HARDWARE
from vnuma.domain.topology.release import VIRTUAL_NUMA_SETTINGS
from vnuma.domain.vm.estate import Declared, Estate, NotShown, Unread, Unseen
from vnuma.domain.vm.setting import TYPED, Value, is_governed
from vnuma.errors import InputError, reading
from vnuma.estate import design_vm

_MOST_BYTES = 16_000_000
_MOST_MEMBERS = 50
_DEEPEST = 64
_CPU, _MEMORY = "3", "4"
_MEGA: Mapping[str, int] = {_CPU: 10**6, _MEMORY: 2**20}
"""The unit of a setting: a megahertz, a megabyte."""
_UNITS = {
    **dict.fromkeys(("byte", "bytes"), 1),
    **dict.fromkeys(("kb", "kilobytes"), 2**10),
    **dict.fromkeys(("mb", "megabytes"), 2**20),
    **dict.fromkeys(("gb", "gigabytes"), 2**30),
    **dict.fromkeys(("mhz", "megahertz"), 10**6),
    **dict.fromkeys(("ghz", "gigahertz"), 10**9),
}
_POWER = re.compile(r"(?:byte|hertz)\s*\*\s*(2|10)\s*\^\s*([0-9]{1,2})", re.ASCII)
_RANGE = frozenset({"min", "max"})
"""Values of `bound` for an item that limits the allowed range instead of being deployed."""
_ALLOCATION = {
    _CPU: {"Reservation": "cpuReservation", "Limit": "cpuLimit"},
    _MEMORY: {"Reservation": "memoryReservation", "Limit": "memoryLimit"},
}
_NOT_IN_OVF = NotShown("an OVF descriptor")
_NO_FIELD = ("cpuAffinity", "memoryAffinity", "memoryReservationLockedToMax")
_CONFIG = {"cpuhotaddenabled": "cpuHotAddEnabled", "memoryhotaddenabled": "memoryHotAddEnabled"}


def read_ovf(path: Path) -> Estate:
    """The VMs of an .ovf or .ova file. Raises InputError for another, or one with a document type."""
    data = (
        _descriptor_of_ova(path)
        if path.suffix.lower() == ".ova"
        else design_vm.bounded_bytes(path, _MOST_BYTES, "OVF")
    )
    root = _parsed(path, data)
    if _name(root) != "Envelope":
        raise InputError(f"{path} is XML but not OVF: its root is {_name(root)[:40]}.", fix="Name an .ovf.")
    if any(_name(one) == "Content" for one in root):
        raise InputError(
            f"{path} is OVF 0.9, whose format is not read.",
            fix="Export the VM again with a newer tool; ovftool writes OVF 1.x.",
        )
    systems = [one for one in root.iter() if _name(one) == "VirtualSystem"]
    if not systems:
        raise InputError(f"{path} describes no VM.", fix="Name the .ovf of a VM or vApp.")
    chosen, place = _default_configuration(root), design_vm.declared_at_start(path)
    designs = [_designed(one, chosen, place) for one in systems]
    return design_vm.estate_of_designs(path, "ovf", "OVF", designs)


def _designed(
    system: ET.Element, configuration: str | None, place: Declared
) -> design_vm.DesignedVm | Unseen:
    """The VM, or why it cannot be read."""
    name = _text(system, "Name")
    address = _attribute(system, "id") or name or "vm"
    names = (*_CONFIG.values(), *(name for fields in _ALLOCATION.values() for name in fields.values()))
    settings: dict[str, Value] = {name: TYPED[name].unset for name in names}
    absent: dict[str, str] = dict.fromkeys((*_NO_FIELD, *VIRTUAL_NUMA_SETTINGS), _NOT_IN_OVF)
    for item in _items(system, configuration):
        kind = _text(item, "ResourceType")
        if kind in _ALLOCATION and _attribute(item, "bound") not in _RANGE:
            found = _of_item(kind, item)
            if isinstance(found, str):
                return Unread("vm", name or address, found)
            settings |= found
    if _number_of(settings, "memoryReservation") < _number_of(settings, "memoryMB"):
        # Locked to the maximum, the reservation is always all memory (VirtualMachineConfigSpec).
        settings["memoryReservationLockedToMax"] = False
        absent.pop("memoryReservationLockedToMax")
    for missing in design_vm.SIZE - settings.keys():
        absent[missing] = "the descriptor's hardware section does not give it"
    for key, value in _pairs(system, "Config"):
        if key.lower() in _CONFIG:
            settings[_CONFIG[key.lower()]] = value.strip().lower() == "true"
        elif key.lower() == "virtualnuma.corespernumanode" and (size := _number(value)) is not None:
            settings |= {"coresPerNumaNode": size, "autoCoresPerNumaNode": size == 0}
            for known in ("coresPerNumaNode", "autoCoresPerNumaNode"):
                absent.pop(known, None)
    for key, value in _pairs(system, "ExtraConfig"):
        if is_governed(key):
            settings[key] = value
        elif key.lower() == "sched.cpu.latencysensitivity":
            settings["latencySensitivity"] = value.lower()
    # The versions that the descriptor allows, of which the platform chooses (DSP0243, VirtualSystemType).
    texts = [one.text or "" for one in system.iter() if _name(one) == "VirtualSystemType"]
    offered = tuple(int(number) for text in texts for number in re.findall(r"vmx-([0-9]{1,2})\b", text))
    if not offered:
        absent[HARDWARE] = "the descriptor names no vmx- version"
    return design_vm.DesignedVm(
        address=address,
        name=name or address,
        hardware=max(offered, default=None),
        offered=offered,
        settings=settings,
        absent=absent,
        guest_id=next(filter(None, (_attribute(one, "osType") for one in system.iter())), ""),
        declared=place,
    )


def _of_item(kind: str, item: ET.Element) -> dict[str, Value] | str:
    """An item of processors or memory as settings, in MHz and MB, or why it cannot be read."""
    found: dict[str, Value] = {}
    units = _text(item, "AllocationUnits")
    text = _text(item, "VirtualQuantity").strip()
    quantity = _number(text)
    if text and quantity is None:
        what = "processors" if kind == _CPU else "memory"
        return f"the quantity of {what} is {text[:20]!r}, not a number"
    if kind == _CPU:
        found["numCoresPerSocket"] = _number(_text(item, "CoresPerSocket")) or 1
    if quantity is not None:
        own = _text(item, "VirtualQuantityUnits") or units
        name, factor = ("numCPUs", 1.0) if kind == _CPU else ("memoryMB", _factor(own, _MEGA[kind]))
        found[name] = int(quantity * factor)
    for tag, name in _ALLOCATION[kind].items():
        number = _number(_text(item, tag))
        if number is not None:
            found[name] = number if number < 0 else int(number * _factor(units, _MEGA[kind]))
    return found


def _number_of(settings: Mapping[str, Value], name: str) -> int:
    value = settings.get(name)
    return value if isinstance(value, int) else 0


def _items(system: ET.Element, configuration: str | None) -> Iterator[ET.Element]:
    """Items that the default configuration deploys; its own come last."""
    found = [one for one in system.iter() if _name(one) == "Item"]
    yield from (one for one in found if not _attribute(one, "configuration"))
    yield from (
        one for one in found if configuration and configuration in _attribute(one, "configuration").split()
    )


def _default_configuration(root: ET.Element) -> str | None:
    """The default configuration: the one marked so, else the first."""
    every = [one for one in root.iter() if _name(one) == "Configuration"]
    marked = [one for one in every if _attribute(one, "default").lower() in {"true", "1"}]
    return next((_attribute(one, "id") for one in marked or every), None)


def _pairs(system: ET.Element, tag: str) -> Iterator[tuple[str, str]]:
    for one in system.iter():
        if _name(one) == tag and _attribute(one, "key"):
            yield _attribute(one, "key"), _attribute(one, "value")


def _factor(units: str, mega: int) -> float:
    """How many megahertz or megabytes one of these units is; 1 for none or an unknown one."""
    words = units.strip().lower()
    match = _POWER.fullmatch(words)
    size = int(match[1]) ** min(int(match[2]), 60) if match else _UNITS.get(words, mega)
    return size / mega


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,12}", text.strip(), re.ASCII) else None


def _text(item: ET.Element, tag: str) -> str:
    return next((one.text or "" for one in item if _name(one) == tag), "")


def _attribute(item: ET.Element, name: str) -> str:
    return next((value for key, value in item.attrib.items() if key.rpartition("}")[2] == name), "")


def _name(item: ET.Element) -> str:
    return str(item.tag).rpartition("}")[2]


def _descriptor_of_ova(path: Path) -> bytes:
    """The .ovf in a .ova, which is its first file (DSP0243, 5.3); the disks after it are not read."""
    try:
        with reading(path), tarfile.open(path, "r:") as archive:
            for number, member in enumerate(archive):
                if number == _MOST_MEMBERS:
                    break
                if member.isfile() and member.name.lower().endswith(".ovf") and member.size <= _MOST_BYTES:
                    file = archive.extractfile(member)
                    return file.read() if file else b""
    except (OSError, tarfile.TarError) as error:
        what = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path} cannot be read as an OVA ({what}).", fix="Check the file.") from error
    raise InputError(f"{path} contains no .ovf descriptor of its own.", fix="Name the .ovf itself.")


def _parsed(path: Path, data: bytes) -> ET.Element:
    """The XML. Documents with their own entities, or too deep, are refused unread."""
    depth = 0

    def opened(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise InputError(f"{path} is nested deeper than OVF allows.", fix="Name the descriptor of a VM.")

    def closed(*_: object) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise InputError(
            f"{path} declares a document type, which OVF files never do.",
            fix="Remove it, if you trust the file.",
        )

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    try:
        parser.Parse(data, True)
        return ET.fromstring(data)
    except (expat.ExpatError, ET.ParseError, ValueError, LookupError) as error:
        raise InputError(f"{path} is not XML ({error}).", fix="Name an .ovf or .ova file.") from error
