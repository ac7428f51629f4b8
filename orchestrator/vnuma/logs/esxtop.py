"""esxtop's memory screen, and its batch file (`esxtop -b`).

No public batch file with NUMA columns was found, so their names are assumed: those of the screen, or with the
words NUMA and home, local, remote or migrations. A file without them says so.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
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


_GROUP = re.compile(r"\\Group Memory\((\d{1,12}):([^)]{1,200})\)\\(.{1,80})$", re.ASCII)
_COLUMNS = {
    "nhn": re.compile(r"NHN|NUMA.*home", re.I),
    "nmig": re.compile(r"NMIG|NUMA.*migr", re.I),
    "remote_mb": re.compile(r"NRMEM|NUMA.*remote", re.I),
    "n_pct_l": re.compile(r"N%L|(?:%.*NUMA|NUMA.*%).*local|NUMA local.*%", re.I),
    "local_mb": re.compile(r"NLMEM|NUMA.*local", re.I),
}


def batch(text: str) -> MemoryScreen | None:
    """The VMs of a batch file, by its last sample; None for any other text."""
    rows = csv.reader(line for line in text.splitlines() if line.startswith('"'))
    try:
        header = next(rows, [])
        groups = list(_groups(header))
        if not header or "PDH-CSV" not in header[0] or not groups:
            return None
        last = [row for row in rows if len(row) == len(header)]
    except csv.Error:
        return None
    found: dict[tuple[str, str], dict[str, str]] = {}
    for at, key, name in groups:
        column = next((one for one, pattern in _COLUMNS.items() if pattern.search(name)), "")
        found.setdefault(key, {})[column] = last[-1][at] if last else ""
    return MemoryScreen((), tuple(_sample(*key, figures) for key, figures in found.items()))


def _groups(header: list[str]) -> Iterator[tuple[int, tuple[str, str], str]]:
    """Column, group (id and name) and counter of what the file has of the memory of groups."""
    for at, title in enumerate(header):
        found = _GROUP.search(title)
        if found:
            yield at, (found[1], found[2]), found[3]


def _sample(gid: str, name: str, figures: dict[str, str]) -> VmMemory:
    migrations, local = _decimal(figures.get("nmig")), _decimal(figures.get("n_pct_l"))
    homes = figures.get("nhn", "")
    return VmMemory(
        gid=gid,
        name=name,
        nhn=tuple(int(node) for node in homes.split(",")) if _HOMES.fullmatch(homes) else (),
        nmig=None if migrations is None else int(migrations),
        remote_mb=_decimal(figures.get("remote_mb")),
        local_mb=_decimal(figures.get("local_mb")),
        n_pct_l=None if local is None else int(local),
    )


def _decimal(text: str | None) -> float | None:
    return float(text) if text is not None and _DECIMAL.fullmatch(text) else None
