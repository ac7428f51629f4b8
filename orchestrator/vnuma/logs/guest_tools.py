"""Tools inside the guest that show its topology: Coreinfo on Windows, lscpu and lstopo on Linux."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_KIND = r"(Socket|NUMA Node|Group|Physical Processor)\s+(\d{1,4})"
_MAP = re.compile(rf"^\s*([*-]+)\s+{_KIND}\b", re.ASCII)
_HEADING = re.compile(rf"^\s*{_KIND}(?: \([^)]{{1,40}}\))?:\s*$", re.ASCII)
_MASK = re.compile(r"^\s*([*-]+)\s*$", re.ASCII)
_LSCPU = re.compile(r"^\s*([A-Za-z][\w() -]{0,40}):\s+(\d{1,6})\s*$", re.ASCII | re.M)
_NODE_CPUS = re.compile(r"^\s*NUMA node(\d{1,4}) CPU\(s\):\s+([\d,-]{1,4000})\s*$", re.ASCII | re.M)
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_PACKAGE = re.compile(r"\bPackage\s+L#\d", re.ASCII)
_LSTOPO_NODE = re.compile(r"\bNUMANode\s+L#\d", re.ASCII)
_EACH = re.compile(r"\b(\d{1,4})x total", re.ASCII)
_CORE = re.compile(r"\bCore\s+L#\d", re.ASCII)

_MOST_CPUS = 4096


@dataclass(frozen=True)
class GuestView:
    """A tool's view of the guest; None where missing. Sizes are logical CPUs by node."""

    cpus: int | None = None
    sockets: int | None = None
    cores_per_socket: int | None = None
    numa_nodes: int | None = None
    node_sizes: tuple[int, ...] = ()


def coreinfo(text: str) -> GuestView:
    """Coreinfo's maps, in which `*` marks a logical CPU. A uniform guest shows one node.

    With several processor groups (more than 64 CPUs) a heading such as `NUMA Node 0:` stands above a line for
    each group.
    """
    maps: dict[str, Counter[int]] = {}
    width = 0
    heading: tuple[str, int] | None = None
    for line in text.splitlines():
        above = _HEADING.match(line)
        found = _MAP.match(line)
        mask = _MASK.match(line) if heading else None
        heading = (above[1], int(above[2])) if above else heading if mask else None
        row = (found[2], int(found[3])) if found else heading if mask else None
        if row:
            cpus = (found or mask or line)[1]
            maps.setdefault(row[0], Counter())[row[1]] += cpus.count("*")
            width = max(width, len(cpus))
    nodes = tuple(size for _, size in sorted(maps.get("NUMA Node", Counter()).items()))
    if not maps:
        return GuestView()
    groups = maps.get("Group", Counter())
    return GuestView(
        cpus=sum(groups.values()) or sum(nodes) or width,
        sockets=len(maps["Socket"]) if "Socket" in maps else None,
        numa_nodes=len(nodes) or None,
        node_sizes=nodes,
    )


def lscpu(text: str) -> GuestView:
    """lscpu's summary in its English wording."""
    named = {name.strip(): int(value) for name, value in _LSCPU.findall(text)}
    sizes = {int(node): _cpus(ranges) for node, ranges in _NODE_CPUS.findall(text)}
    return GuestView(
        cpus=named.get("CPU(s)"),
        sockets=named.get("Socket(s)"),
        cores_per_socket=named.get("Core(s) per socket"),
        numa_nodes=named.get("NUMA node(s)"),
        node_sizes=tuple(size for _, size in sorted(sizes.items())),
    )


def lstopo(text: str) -> GuestView:
    """lstopo's text form: packages and NUMA nodes, with their cores if counted or listed."""
    lines = text.splitlines()
    packages = sum(len(_PACKAGE.findall(line)) for line in lines)
    nodes = sum(len(_LSTOPO_NODE.findall(line)) for line in lines)
    sizes: list[int] = []
    for line in lines:
        if _LSTOPO_NODE.search(line):
            counted = _EACH.search(line)
            sizes.append(int(counted[1]) if counted else 0)
        if _CORE.search(line) and sizes and not _EACH.search(line):
            sizes[-1] += 1
    known = tuple(sizes) if sizes and all(sizes) else ()
    return GuestView(
        cpus=sum(known) or None, sockets=packages or None, numa_nodes=nodes or None, node_sizes=known
    )


def _cpus(ranges: str) -> int:
    """The number of CPUs in a list such as `0-7,16-23`."""
    total = 0
    for first, last in _RANGE.findall(ranges):
        total += max(0, int(last or first) - int(first) + 1)
    return min(total, _MOST_CPUS)
