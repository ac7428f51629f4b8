"""A host's packages, cores and NUMA nodes: vsish, `sched-stats -t ncpus` and `esxcli hardware`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from vnuma.logs.pasted import sources

_COUNTED = re.compile(r"^\s*(\d{1,6})\s+(PCPUs?|cores?|packages?|NUMA nodes?)\s*$", re.ASCII)
_NAMED = re.compile(
    r"^\s*(CPU Packages|CPU Cores|CPU Threads|NUMA Node Count|Physical Memory):\s*(\d{1,18})\b", re.ASCII
)
_NAMES: Mapping[str, str] = {
    **{"PCPU": "threads", "core": "cores", "package": "packages", "NUMA node": "numa_nodes"},
    **{"CPU Packages": "packages", "CPU Cores": "cores", "CPU Threads": "threads"},
    **{"NUMA Node Count": "numa_nodes", "Physical Memory": "memory_mb"},
}
_MIB = 1 << 20


@dataclass(frozen=True)
class HostNodes:
    """A host as a tool counts it; None where missing. More nodes than packages: sub-NUMA clusters."""

    packages: int | None = None
    numa_nodes: int | None = None
    cores: int | None = None
    threads: int | None = None
    memory_mb: int | None = None


def vsish(text: str) -> Iterator[HostNodes]:
    """vsish's lists under "CPU Packages" and "NUMA nodes", one number per line, where both exist."""
    counts: dict[str, int] = {}
    heading = ""
    for line in text.splitlines():
        words = line.strip().rstrip(":/").lower()
        if words in ("cpu packages", "numa nodes"):
            heading = words
            counts[heading] = 0
        elif heading and words.isdecimal():
            counts[heading] += 1
        elif words:
            heading = ""
    if len(counts) == 2:
        yield HostNodes(counts["cpu packages"], counts["numa nodes"])


def ncpus(text: str) -> Iterator[HostNodes]:
    """`sched-stats -t ncpus`, one for each host in the text."""
    return _hosts(text, lambda line: _turned(_COUNTED.match(line)))


def esxcli(text: str) -> Iterator[HostNodes]:
    """`esxcli hardware cpu global get` and `memory get`, one for each host in the text."""
    return _hosts(text, lambda line: _pair(_NAMED.match(line)))


def _hosts(text: str, read: Callable[[str], tuple[str, int] | None]) -> Iterator[HostNodes]:
    for part in sources(text.splitlines(), lambda line: (found := read(line)) and found[0]):
        found = dict(filter(None, map(read, part)))
        if {"packages", "numa_nodes"} & found.keys():
            yield HostNodes(**found)


def _turned(found: re.Match[str] | None) -> tuple[str, int] | None:
    return (_NAMES[found[2].removesuffix("s")], int(found[1])) if found else None


def _pair(found: re.Match[str] | None) -> tuple[str, int] | None:
    if found is None:
        return None
    name, number = _NAMES[found[1]], int(found[2])
    return name, number // _MIB if name == "memory_mb" else number
