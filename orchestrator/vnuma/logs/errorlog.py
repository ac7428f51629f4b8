"""SQL Server's error log: sockets, licensing, nodes and machine at each of its starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

# Consoles wrap the log anywhere, even within words, so these match text without any blanks.
_N = r"(\d{1,6})(?!\d)"
_MASK = r"0x([0-9a-f]{1,16})(?::\d{1,3})?"
_MESSAGES: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.ASCII | re.I)
    for name, pattern in {
        "time": r"\d{4}-\d\d-\d\d\d\d:\d\d:\d\d",
        "process": r"ServerprocessIDis(\d{1,10})",
        "machine": r"SystemManufacturer:'([^']{0,200})',SystemModel:'([^']{0,200})'",
        "detected": rf"detected{_N}sockets?with{_N}corespersocket"
        rf"(?:and{_N}logicalprocessorspersocket(?:,{_N}totallogicalprocessors"
        rf"(?:;using{_N}logicalprocessors)?)?)?",
        "cpus": rf"Detected{_N}CPUs\.",
        "soft_numa": r"Automaticsoft-NUMAwasenabled",
        "node": rf"Nodeconfiguration:node(\d{{1,4}}):CPUmask:{_MASK}ActiveCPUmask:{_MASK}",
        "translated": rf"(\d{{1,4}}):[^0-9]{{1,40}}?:{_MASK}[^0-9]{{1,40}}?:{_MASK}",
        "server": r"Servernameis'([^']{1,200})'",
    }.items()
}
_ANY = re.compile("|".join(f"(?P<{name}>{one.pattern})" for name, one in _MESSAGES.items()), re.ASCII | re.I)
_MACHINE = re.compile(r"System Manufacturer: '([^']{0,200})', System Model: '([^']{0,200})'", re.I)


_Message = tuple[str, re.Match[str], str]
"""A message's name, its text, and the time before it."""


@dataclass(frozen=True)
class ErrorLog:
    """One start; None or empty where missing.

    `using` is how many logical processors the licence allows. `node_cpus` are the active CPUs of each SQLOS
    node; with soft-NUMA there are more of these than guest nodes. `translated`: the server writes another
    language than English, in which only masks and the machine are read.
    """

    sockets: int | None = None
    cores_per_socket: int | None = None
    logical_per_socket: int | None = None
    total: int | None = None
    using: int | None = None
    node_cpus: tuple[int, ...] = ()
    soft_numa: bool = False
    manufacturer: str | None = None
    model: str | None = None
    server: str | None = None
    started: str | None = None
    translated: bool = False
    doubts: tuple[str, ...] = ()


@dataclass
class _Start:
    """The messages of one start, by name; nodes as their CPUs and their active CPUs."""

    at: str = ""
    found: dict[str, re.Match[str]] = field(default_factory=dict)
    nodes: dict[int, tuple[int, int]] = field(default_factory=dict)
    cycled: bool = False
    """Whether a new file of the same process repeats its first messages."""

    def says_again(self, name: str, message: re.Match[str]) -> bool:
        """Whether this message belongs to another start than those before it."""
        if name in ("node", "translated"):
            return int(message[1]) in self.nodes
        if name == "process" and name in self.found:
            return message[1] != self.found[name][1]
        if name == "machine" and self.cycled:
            return False
        return name in self.found or (name in ("process", "machine", "detected", "cpus") and bool(self.nodes))

    def take(self, name: str, message: re.Match[str], at: str) -> None:
        """Take a message that belongs to it."""
        self.at = self.at or at
        self.cycled = self.cycled or (name == "process" and name in self.found)
        if name in ("node", "translated"):
            number, *masks = message.groups()
            whole, active = (int(mask, 16).bit_count() for mask in masks)
            self.nodes[int(number)] = (whole, active)
        self.found.setdefault(name, message)


def read_errorlog(text: str) -> ErrorLog:
    """The start-up messages in an error log or an excerpt; of several starts or servers, the last."""
    return starts(text)[-1]


def starts(text: str) -> tuple[ErrorLog, ...]:
    """Every start in a text, the latest at the end; one without anything if there is none."""
    words = text.split()
    found = [_Start()]
    for name, message, at in _in_order(list(_messages("".join(words)))):
        if found[-1].says_again(name, message):
            found.append(_Start())
        found[-1].take(name, message, at)
    machines = _machines(" ".join(words), found)
    if _falls([start.at for start in found]):
        found.reverse()
        machines.reverse()
    return tuple(_log(start, machine) for start, machine in zip(found, machines, strict=True))


def _messages(dense: str) -> Iterator[_Message]:
    """Each message of interest, in the order of the text."""
    at = ""
    for seen in _ANY.finditer(dense):
        name = seen.lastgroup or ""
        if name == "time":
            at = f"{seen[0][:10]}T{seen[0][10:]}"
        elif message := _MESSAGES[name].match(dense, seen.start()):
            yield name, message, at


def _in_order(messages: list[_Message]) -> list[_Message]:
    """The messages, oldest first: viewers export the newest line first, people paste the newest file first.

    Messages of one second are the other way round too if the nodes come before the processors.
    """
    if not _falls([at for _, _, at in messages]):
        return messages
    backwards = any(
        (one[0], other[0], one[2]) == ("node", "detected", other[2])
        for one, other in pairwise(message for message in messages if message[0] in ("node", "detected"))
    )
    return sorted(reversed(messages) if backwards else messages, key=lambda message: message[2])


def _falls(times: list[str]) -> bool:
    """Whether times are known and go backwards."""
    return all(times) and len(set(times)) > 1 and all(one >= other for one, other in pairwise(times))


def _machines(spaced: str, found: list[_Start]) -> list[tuple[str, str] | None]:
    """Each start's manufacturer and model with their blanks, which the search without blanks lost."""
    names = {"".join("".join(one.groups()).split()): one for one in _MACHINE.finditer(spaced)}
    shown = [start.found.get("machine") for start in found]
    whole = [names.get("".join(one.groups())) if one else None for one in shown]
    return [(one[1], one[2]) if one else None for one in whole]


def _log(start: _Start, machine: tuple[str, str] | None) -> ErrorLog:
    detected, cpus, server = (start.found.get(name) for name in ("detected", "cpus", "server"))
    figures = [int(group) if group else None for group in detected.groups()] if detected else [None] * 5
    sockets, cores, logical, total, using = figures
    total = total if total is not None else int(cpus[1]) if cpus else None
    nodes = [start.nodes[number] for number in sorted(start.nodes)]
    placed = sum(whole for whole, _ in nodes)
    differs = bool(nodes) and total is not None and placed != total
    return ErrorLog(
        sockets=sockets,
        cores_per_socket=cores,
        logical_per_socket=logical,
        total=total,
        using=using,
        node_cpus=tuple(active for _, active in nodes),
        soft_numa="soft_numa" in start.found,
        manufacturer=machine[0] if machine else None,
        model=machine[1] if machine else None,
        server=server[1] if server else None,
        started=start.at or None,
        translated="translated" in start.found,
        doubts=(f"its nodes have {placed} logical processors, the server {total}",) if differs else (),
    )
