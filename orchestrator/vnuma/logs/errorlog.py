"""SQL Server's error log: sockets, licensing, nodes and machine at its start."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Consoles wrap the log anywhere, even within words, so these match text without any blanks.
_N = r"(\d{1,6})(?!\d)"
_DETECTED = re.compile(
    rf"detected{_N}sockets?with{_N}corespersocket"
    rf"(?:and{_N}logicalprocessorspersocket(?:,{_N}totallogicalprocessors"
    rf"(?:;using{_N}logicalprocessors)?)?)?",
    re.ASCII | re.I,
)
_NODE = re.compile(
    r"Nodeconfiguration:node(\d{1,4}):CPUmask:0x[0-9a-f]{1,16}(?::\d{1,3})?"
    r"ActiveCPUmask:0x([0-9a-f]{1,16})",
    re.ASCII | re.I,
)
_SOFT_NUMA = re.compile(r"Automaticsoft-NUMAwasenabled", re.I)
_MACHINE = re.compile(r"System Manufacturer: '([^']{0,200})', System Model: '([^']{0,200})'", re.I)


@dataclass(frozen=True)
class ErrorLog:
    """The log's content; None or empty where missing.

    `using` is how many logical processors the licence allows. `node_cpus` are the active CPUs of each SQLOS
    node; with soft-NUMA there are more of these than guest nodes.
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


def read_errorlog(text: str) -> ErrorLog:
    """The start-up messages in an error log or an excerpt; of several starts, the last."""
    words = text.split()
    dense = "".join(words)
    detected = _last(_DETECTED, dense)
    figures = [int(group) if group else None for group in detected.groups()] if detected else [None] * 5
    nodes = {int(match[1]): int(match[2], 16).bit_count() for match in _NODE.finditer(dense)}
    machine = _last(_MACHINE, " ".join(words))
    sockets, cores, logical, total, using = figures
    return ErrorLog(
        sockets=sockets,
        cores_per_socket=cores,
        logical_per_socket=logical,
        total=total,
        using=using,
        node_cpus=tuple(cpus for _, cpus in sorted(nodes.items())),
        soft_numa=_SOFT_NUMA.search(dense) is not None,
        manufacturer=machine[1] if machine else None,
        model=machine[2] if machine else None,
    )


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(reversed(list(pattern.finditer(text))), None)
