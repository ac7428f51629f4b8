"""A VM's .vmx file: the settings as ESXi stores them, without a vCenter.

Format: VMware's configuration dictionary, with a line `key = "value"` for each key, case-insensitive keys,
`|22` for a quote; `.encoding` names the character set. The setting of each key follows from the DICT lines of
published vmware.log files, and from the field names of VirtualMachineConfigSpec. coresPerNumaNode is
numa.vcpu.coresPerNode (a log of ESXi 8.0, Denneman 2022-11-03); 0 is automatic, as in the API. A file with a
duplicate key, in whatever case, is not opened: https://github.com/hashicorp/vagrant/issues/2597.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from vnuma.domain.topology.release import VIRTUAL_NUMA_SETTINGS
from vnuma.domain.vm.estate import Declared, Estate, Unseen
from vnuma.domain.vm.setting import Value, is_governed
from vnuma.errors import InputError
from vnuma.estate.design_vm import (
    ACCEPTED_KEY,
    DesignedVm,
    accepted_in,
    bounded_bytes,
    cpu_numbers,
    estate_of_designs,
    relative_to_here,
    undetermined_hardware,
    utf16_text,
)

_MOST_BYTES = 1_000_000
_LINE = re.compile(r'^\s*([\w.:\-]{1,200})\s*=\s*(?:"([^"\n]*)"|([^"#\s][^#\n]*?))\s*(?:#.*)?$')
_ESCAPED = re.compile(r"\|([0-9A-Fa-f]{2})")
_ENCODING = re.compile(rb'^\s*\.encoding\s*=\s*"([\w.\-]{1,40})"', re.M | re.I)
_NOT_SHOWN = "its form in a .vmx file is not documented"
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


def _word(text: str) -> Value:
    return text.strip().lower()


_KEYS: Mapping[str, tuple[str, Read, Value]] = {
    "numvcpus": ("numCPUs", _whole, 1),
    "cpuid.corespersocket": ("numCoresPerSocket", _whole, 1),
    "memsize": ("memoryMB", _whole, 4),
    "vcpu.hotadd": ("cpuHotAddEnabled", _truth, False),
    "mem.hotadd": ("memoryHotAddEnabled", _truth, False),
    "sched.cpu.affinity": ("cpuAffinity", cpu_numbers, ()),
    "sched.mem.affinity": ("memoryAffinity", cpu_numbers, ()),
    "sched.cpu.min": ("cpuReservation", _whole, 0),
    "sched.cpu.max": ("cpuLimit", _limit, -1),
    "sched.mem.min": ("memoryReservation", _whole, 0),
    "sched.mem.minsize": ("memoryReservation", _whole, 0),
    "sched.mem.max": ("memoryLimit", _limit, -1),
    "sched.mem.pin": ("memoryReservationLockedToMax", _truth, False),
    "sched.cpu.latencysensitivity": ("latencySensitivity", _word, "normal"),
}
"""By lower-case key: the setting, how its text is read, and its value without the key."""


def read_vmx(path: Path) -> Estate:
    """The VM of a .vmx file. Raises InputError for any other file."""
    text = _text(bounded_bytes(path, _MOST_BYTES, "a .vmx file"))
    entries = _entries(text)
    keys = {one.key: one.value for one in entries}
    if not _NAMES & keys.keys():
        raise InputError(
            f"{path} is not a .vmx file: it has neither numvcpus, memSize nor virtualHW.version.",
            fix="Copy the .vmx of a VM from its datastore.",
        )
    if why := _twice(entries):
        name = keys.get("displayname") or path.stem
        return estate_of_designs(path, "vmx", "vmx file", [], [Unseen("vm", name, f"{path.name} has {why}")])
    lines = text.splitlines()
    accepted = (*accepted_in(lines, 1, len(lines)), *filter(None, [keys.get(ACCEPTED_KEY)]))
    declared = Declared(relative_to_here(path, path.parent), 1)
    vm = replace(designed(path.stem, keys), declared=declared, accepted=accepted)
    return estate_of_designs(path, "vmx", "vmx file", [vm])


def designed(name: str, keys: Mapping[str, str]) -> DesignedVm:
    """A VM from its lower-case keys; `name` if it has no displayName."""
    settings: dict[str, Value] = {setting: default for setting, _, default in _KEYS.values()}
    absent = dict.fromkeys(VIRTUAL_NUMA_SETTINGS, _NOT_SHOWN)
    for key, (setting, read, _) in _KEYS.items():
        text = keys.get(key)
        if text is None:
            continue
        try:
            settings[setting] = read(text)
        except ValueError:
            settings.pop(setting, None)
            absent[setting] = f"{key} is {text[:20]!r}, which is not a valid value"
    size = keys.get(_NODE_SIZE, "").strip()
    if re.fullmatch(r"[0-9]{1,4}", size, re.ASCII):
        settings |= {"coresPerNumaNode": int(size), "autoCoresPerNumaNode": int(size) == 0}
        absent = {name: why for name, why in absent.items() if name not in settings}
    settings |= {key: text for key, text in keys.items() if is_governed(key) or key == "cpuid.maxvcpus"}
    hardware = _hardware(keys.get("virtualhw.version", ""))
    return DesignedVm(
        address=name,
        name=keys.get("displayname") or name,
        hardware=hardware,
        settings=settings,
        absent={**absent, **undetermined_hardware(hardware, "the file has no virtualHW.version")},
        guest_id=keys.get("guestos", ""),
    )


def _hardware(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,2}", text.strip(), re.ASCII) else None


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


@dataclass(frozen=True)
class _Entry:
    """A line of the dictionary, with `key` in lower case."""

    line: int
    key: str
    value: str


def _entries(text: str) -> list[_Entry]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.match(line)
        if match:
            value = match[2] if match[2] is not None else match[3]
            found.append(
                _Entry(number, match[1].lower(), _ESCAPED.sub(lambda it: chr(int(it[1], 16)), value))
            )
    return found


def _twice(entries: Iterable[_Entry]) -> str:
    """The first duplicate key, with both values; empty without one."""
    first: dict[str, _Entry] = {}
    for one in entries:
        known = first.setdefault(one.key, one)
        if known is not one:
            return (
                f"{one.key} twice, {known.value[:40]!r} in line {known.line} and {one.value[:40]!r} in line "
                f"{one.line}: VMware does not open such a file"
            )
    return ""
