"""Linux's NUMA nodes from /sys/devices/system/node, and `dd`'s own times.

Every parser takes text in the C locale and raises ValueError for any other text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SECTION = re.compile(r"^@@ ([\w./-]{1,80})$", re.ASCII)
_MEMINFO = re.compile(r"^Node (\d{1,4}) (\w+(?:\(\w+\))?):\s+(\d{1,15}) kB\s*$", re.ASCII | re.M)
_RANGE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?", re.ASCII)
_DD = re.compile(
    r"^(\d{1,18}) bytes (?:\([^)]{1,60}\) )?copied, "
    r"(\d{1,12}(?:\.\d{1,12})?(?:e[+-]?\d{1,3})?) s(?:econds)?\b",
    re.ASCII | re.M,
)

MOST_CPUS = 65536


@dataclass(frozen=True)
class Copied:
    """`dd`'s final line: bytes, and seconds by its own clock."""

    bytes: int
    seconds: float


def sections(text: str) -> dict[str, str]:
    """A script's output split at its lines `@@ NAME`, without the part before the first."""
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


def copied(text: str) -> tuple[Copied, ...]:
    """The final line of every `dd` in a text: old and new GNU coreutils, and busybox."""
    found = tuple(Copied(int(size), float(seconds)) for size, seconds in _DD.findall(text))
    if any(one.seconds <= 0 for one in found):
        raise ValueError("dd reports an elapsed time of zero")
    return found
