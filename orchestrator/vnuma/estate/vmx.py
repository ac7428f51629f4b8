"""A VM's .vmx file: the settings as ESXi stores them, without a vCenter.

Format: VMware's configuration dictionary, with a line `key = "value"` for each key, case-insensitive keys,
`|22` for a quote; `.encoding` names the character set. The setting of each key follows from the DICT lines of
published vmware.log files, and from the field names of VirtualMachineConfigSpec. coresPerNumaNode is
numa.vcpu.coresPerNode (a log of ESXi 8.0, Denneman 2022-11-03); 0 is automatic, as in the API. So are
cores per socket from hardware version 20 on; older hardware has one core per socket without them. A file with
a duplicate key, in whatever case, is not opened: https://github.com/hashicorp/vagrant/issues/2597.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from vnuma.checks.facts import HARDWARE
from vnuma.domain.topology.release import VIRTUAL_NUMA_SETTINGS
from vnuma.domain.vm.estate import Estate, NotShown, Unread, Unseen
from vnuma.domain.vm.setting import VIRTUAL_NUMA, Value, is_governed
from vnuma.errors import InputError
from vnuma.estate import design_vm
from vnuma.logs.pasted import utf16_text

_MOST_BYTES = 1_000_000
_LINE = re.compile(r'^\s*([\w.:\-]{1,200})\s*=\s*(?:"([^"\n]*)"|([^"#\s][^#\n]*?))\s*(?:#.*)?$')
_ESCAPED = re.compile(r"\|([0-9A-Fa-f]{2})")
_ENCODING = re.compile(rb'^\s*\.encoding\s*=\s*"([\w.\-]{1,40})"', re.M | re.I)
_NOT_SHOWN = NotShown("a .vmx file")
_NODE_SIZE = "numa.vcpu.corespernode"
_NAMES = frozenset({"numvcpus", "memsize", "virtualhw.version"})

Read = Callable[[str], Value]


def _whole(text: str) -> Value:
    if not re.fullmatch(r"-?[0-9]{1,12}", text.strip(), re.ASCII):
        raise ValueError(text)
    return int(text)


def _truth(text: str) -> Value:
    word = text.strip().lower()
    if word not in {"true", "false", "1", "0", "yes", "no"}:
        raise ValueError(text)
    return word in {"true", "1", "yes"}


def _limit(text: str) -> Value:
    return -1 if text.strip().lower() in {"", "unlimited", "-1"} else _whole(text)


_KEYS: Mapping[str, tuple[str, Read, Value]] = {
    "numvcpus": ("numCPUs", _whole, 1),
    "cpuid.corespersocket": ("numCoresPerSocket", _whole, 0),
    "memsize": ("memoryMB", _whole, 4),
    "vcpu.hotadd": ("cpuHotAddEnabled", _truth, False),
    "mem.hotadd": ("memoryHotAddEnabled", _truth, False),
    "sched.cpu.affinity": ("cpuAffinity", design_vm.cpu_numbers, ()),
    "sched.mem.affinity": ("memoryAffinity", design_vm.cpu_numbers, ()),
    "sched.cpu.min": ("cpuReservation", _whole, 0),
    "sched.cpu.max": ("cpuLimit", _limit, -1),
    "sched.mem.min": ("memoryReservation", _whole, 0),
    "sched.mem.minsize": ("memoryReservation", _whole, 0),
    "sched.mem.max": ("memoryLimit", _limit, -1),
    "sched.mem.pin": ("memoryReservationLockedToMax", _truth, False),
    "sched.cpu.latencysensitivity": ("latencySensitivity", lambda text: text.strip().lower(), "normal"),
}
"""By lower-case key: the setting, how its text is read, and its value without the key."""


def ignored_keys(vms: Iterable[design_vm.DesignedVm]) -> list[Unseen]:
    """Keys that a design sets although a field of the VM owns them, by VM.

    "Configuration keys that would conflict with parameters that are explicitly configurable through other
    fields in the ConfigSpec object are silently ignored" (VirtualMachineConfigSpec.extraConfig).
    """
    owners = {key: setting for key, (setting, _, _) in _KEYS.items()} | {_NODE_SIZE: "coresPerNumaNode"}
    return [
        Unseen("vm", vm.name, f"vSphere ignores the key {key}: its field is {owners[key.lower()]}")
        for vm in vms
        for key in vm.settings
        if key.lower() in owners
    ]


def read_vmx(path: Path) -> Estate:
    """The VM of a .vmx file. Raises InputError for any other file."""
    text = _text(design_vm.bounded_bytes(path, _MOST_BYTES, "a .vmx file"))
    entries = list(_entries(text))
    keys = {key: value for _, key, value in entries}
    if not _NAMES & keys.keys():
        raise InputError(
            f"{path} is not a .vmx file: it has neither numvcpus, memSize nor virtualHW.version.",
            fix="Copy the .vmx of a VM from its datastore.",
        )
    vm = designed(path.stem, keys)
    if why := _twice(entries):
        vm = Unread("vm", keys.get("displayname") or path.stem, f"{path.name} has {why}")
    if not isinstance(vm, Unseen):
        lines = text.splitlines()
        accepted = (
            *design_vm.accepted_in(lines, 1, len(lines)),
            *filter(None, [keys.get(design_vm.ACCEPTED_KEY)]),
        )
        vm = replace(vm, declared=design_vm.declared_at_start(path), accepted=accepted)
    return design_vm.estate_of_designs(path, "vmx", "vmx file", [vm])


def designed(name: str, keys: Mapping[str, str]) -> design_vm.DesignedVm | Unseen:
    """A VM from its lower-case keys, or why it cannot be read; `name` if it has no displayName."""
    settings: dict[str, Value] = {setting: default for setting, _, default in _KEYS.values()}
    absent: dict[str, str] = dict.fromkeys(VIRTUAL_NUMA_SETTINGS, _NOT_SHOWN)
    for key, (setting, read, _) in _KEYS.items():
        text = keys.get(key)
        if text is None:
            continue
        try:
            settings[setting] = read(text)
        except ValueError:
            wrong = f"{key} is {text[:20]!r}, which is not a valid value"
            if setting in design_vm.SIZE:
                return Unread("vm", keys.get("displayname") or name, wrong)
            settings.pop(setting, None)
            absent[setting] = wrong
    size = keys.get(_NODE_SIZE, "").strip()
    if re.fullmatch(r"[0-9]{1,4}", size, re.ASCII):
        settings |= {"coresPerNumaNode": int(size), "autoCoresPerNumaNode": int(size) == 0}
        absent = {name: why for name, why in absent.items() if name not in settings}
    settings |= {key: text for key, text in keys.items() if is_governed(key) or key == "cpuid.maxvcpus"}
    version = keys.get("virtualhw.version", "").strip()
    hardware = int(version) if re.fullmatch(r"[0-9]{1,2}", version, re.ASCII) else None
    automatic = not settings["numCoresPerSocket"] and (hardware or 0) >= VIRTUAL_NUMA.hardware
    settings |= {"autoCoresPerSocket": automatic}
    settings["numCoresPerSocket"] = settings["numCoresPerSocket"] or int(not automatic)
    del absent["autoCoresPerSocket"]
    if hardware is None:
        absent[HARDWARE] = "the file has no virtualHW.version"
    return design_vm.DesignedVm(
        address=name,
        name=keys.get("displayname") or name,
        hardware=hardware,
        settings=settings,
        absent=absent,
        guest_id=keys.get("guestos", ""),
    )


def _text(data: bytes) -> str:
    if (text := utf16_text(data)) is not None:
        return text
    named = _ENCODING.search(data)
    encoding = named[1].decode("ascii", errors="replace").lower() if named else "utf-8"
    try:
        codec = "utf-8" if encoding.startswith("utf-16") else codecs.lookup(encoding).name
        return data.decode(codec, errors="strict").lstrip("\ufeff")
    except (LookupError, UnicodeDecodeError):
        return data.decode("latin-1")  # every byte is a character there, and the keys that matter are ASCII


_Entry = tuple[int, str, str]
"""A line of the dictionary: its number, the key in lower case, and the value."""


def _entries(text: str) -> Iterator[_Entry]:
    for number, line in enumerate(text.splitlines(), 1):
        if match := _LINE.match(line):
            value = match[2] if match[2] is not None else match[3]
            yield number, match[1].lower(), _ESCAPED.sub(lambda it: chr(int(it[1], 16)), value)


def _twice(entries: Iterable[_Entry]) -> str:
    """The first duplicate key, with both values; empty without one."""
    first: dict[str, tuple[int, str]] = {}
    for line, key, value in entries:
        known, before = first.setdefault(key, (line, value))
        if known != line:
            return (
                f"{key} twice, {before[:40]!r} in line {known} and {value[:40]!r} in line "
                f"{line}: VMware does not open such a file"
            )
    return ""
