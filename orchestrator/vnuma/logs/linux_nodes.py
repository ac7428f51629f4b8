"""What Linux shows of its NUMA nodes: /sys/devices/system/node, `numactl --hardware`, and `dd`'s own time.

Every parser takes text in the C locale and raises ValueError for text of another kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SECTION = re.compile(r"^@@ ([\w./-]{1,80})$", re.ASCII)
_MEMINFO = re.compile(r"^Node (\d{1,4}) (\w+(?:\(\w+\))?):\s+(\d{1,15}) kB\s*$", re.ASCII | re.M)
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)
_NODE_LINE = re.compile(r"^node (\d{1,4}) (cpus|size|free):(.*)$", re.ASCII | re.M)
_DISTANCE = re.compile(r"^\s*(\d{1,4}):((?:\s+\d{1,5})+)\s*$", re.ASCII | re.M)
_DD = re.compile(
    r"^(\d{1,18}) bytes (?:\([^)]{1,60}\) )?copied, "
    r"(\d{1,12}(?:\.\d{1,12})?(?:e[+-]?\d{1,3})?) s(?:econds)?\b",
    re.ASCII | re.M,
)

MOST_CPUS = 65536


@dataclass(frozen=True)
class Hardware:
    """What `numactl --hardware` prints: CPUs, size and free memory in MB by node, and the distances."""

    cpus: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    size_mb: Mapping[int, int] = field(default_factory=dict)
    free_mb: Mapping[int, int] = field(default_factory=dict)
    distances: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Copied:
    """What `dd` says when it ends: bytes, and seconds by its own clock."""

    bytes: int
    seconds: float


def sections(text: str) -> dict[str, str]:
    """A script's output cut at its lines `@@ NAME`; what stands before the first is left out."""
    found: dict[str, list[str]] = {}
    name = None
    for line in text.splitlines():
        mark = _SECTION.match(line)
        if mark:
            name = mark[1]
            found[name] = []
        elif name is not None:
            found[name].append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def meminfo(text: str) -> dict[int, dict[str, int]]:
    """Kilobytes by node and name, from one or several files /sys/devices/system/node/node*/meminfo.

    https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-devices-node
    """
    found: dict[int, dict[str, int]] = {}
    for node, name, kilobytes in _MEMINFO.findall(text):
        found.setdefault(int(node), {})[name] = int(kilobytes)
    if not found:
        raise ValueError("no line of a node's meminfo was found")
    return found


def number_list(text: str) -> tuple[int, ...]:
    """A kernel list of numbers, `0-3,8`, as cpulist and online print it; empty for a node without CPUs."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        found = _RANGE.fullmatch(part.strip())
        if not found:
            raise ValueError(f"not a list of numbers: {text.strip()[:60]!r}")
        first, last = int(found[1]), int(found[2] or found[1])
        if not first <= last < MOST_CPUS:
            raise ValueError(f"no range: {part!r}")
        numbers += range(first, last + 1)
    return tuple(numbers)


def hardware(text: str) -> Hardware:
    """`numactl --hardware` (numactl(8)), distances in the order of the nodes that it lists."""
    found: dict[str, dict[int, str]] = {"cpus": {}, "size": {}, "free": {}}
    for node, what, rest in _NODE_LINE.findall(text):
        found[what][int(node)] = rest
    if not found["size"]:
        raise ValueError("no line of numactl --hardware was found")
    return Hardware(
        {node: tuple(int(cpu) for cpu in rest.split()) for node, rest in found["cpus"].items()},
        {node: int(rest.split()[0]) for node, rest in found["size"].items()},
        {node: int(rest.split()[0]) for node, rest in found["free"].items()},
        {
            int(node): tuple(int(value) for value in row.split())
            for node, row in _DISTANCE.findall(text.partition("node distances:")[2])
        },
    )


def copied(text: str) -> tuple[Copied, ...]:
    """Every `dd`'s last line in a text: of GNU coreutils, old and new, and of busybox."""
    found = tuple(Copied(int(size), float(seconds)) for size, seconds in _DD.findall(text))
    if any(one.seconds <= 0 for one in found):
        raise ValueError("dd reports an elapsed time of zero")
    return found
