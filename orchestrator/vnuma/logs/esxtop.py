"""esxtop's memory screen, and the NUMA lists of vsish."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NODES = re.compile(r"NUMA\s*/MB\s*:\s*(.*)", re.ASCII)
_NODE = re.compile(r"(\d{1,12})\s*\(\s*(\d{1,12})\s*\)", re.ASCII)
_DECIMAL = re.compile(r"\d{1,12}(?:\.\d{1,6})?", re.ASCII)
_HOMES = re.compile(r"\d{1,4}(?:,\d{1,4})*", re.ASCII)


@dataclass(frozen=True)
class VmMemory:
    """One VM's line. NHN: home nodes; NMIG: migrations between nodes; memory in MB; N%L: local percent."""

    gid: str
    name: str
    nhn: tuple[int, ...]
    nmig: int | None
    remote_mb: float | None
    local_mb: float | None
    n_pct_l: int | None


@dataclass(frozen=True)
class MemoryScreen:
    """Memory of the host's nodes as (total, free) in MB, and the VMs shown."""

    nodes: tuple[tuple[int, int], ...]
    vms: tuple[VmMemory, ...]


@dataclass(frozen=True)
class HostNodes:
    """Packages and NUMA nodes that vsish lists; more nodes than packages mean sub-NUMA clusters."""

    packages: int
    numa_nodes: int


def memory_screen(text: str) -> MemoryScreen:
    """The NUMA columns of esxtop's memory screen, as far as shown."""
    nodes: tuple[tuple[int, int], ...] = ()
    vms: list[VmMemory] = []
    header: list[str] = []
    for line in text.splitlines():
        found = _NODES.search(line)
        if found:
            nodes = tuple((int(total), int(free)) for total, free in _NODE.findall(found[1]))
            continue
        fields = line.split()
        if "NAME" in fields and "NHN" in fields:
            header = fields
        elif header:
            row = _row(header, fields)
            vms += [row] if row else []
    return MemoryScreen(nodes, tuple(vms))


def _row(header: list[str], fields: list[str]) -> VmMemory | None:
    """A VM's line; its name may contain blanks, so columns are counted from both ends."""
    at = header.index("NAME")
    after = len(header) - at - 1
    if len(fields) < len(header) or after < 1:
        return None
    named = dict(zip(header[at + 1 :], fields[-after:], strict=True))
    homes = named.get("NHN", "")
    if not (_HOMES.fullmatch(homes) or homes == "-"):
        return None
    before = dict(zip(header[:at], fields[:at], strict=True))
    migrations, local = _decimal(named.get("NMIG")), _decimal(named.get("N%L"))
    return VmMemory(
        gid=before.get("GID", ""),
        name=" ".join(fields[at:-after]),
        nhn=() if homes == "-" else tuple(int(node) for node in homes.split(",")),
        nmig=None if migrations is None else int(migrations),
        remote_mb=_decimal(named.get("NRMEM")),
        local_mb=_decimal(named.get("NLMEM")),
        n_pct_l=None if local is None else int(local),
    )


def host_nodes(text: str) -> HostNodes | None:
    """vsish's lists under "CPU Packages" and "NUMA nodes", one number per line. None unless both exist."""
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
    if len(counts) < 2:
        return None
    return HostNodes(counts["cpu packages"], counts["numa nodes"])


def _decimal(text: str | None) -> float | None:
    return float(text) if text is not None and _DECIMAL.fullmatch(text) else None
