"""What a host's tools print: vsish, `esxcli hardware`, `sched-stats`, and esxtop's memory screen.

Tables of `sched-stats` are read by their columns' names, which differ by release: of clients
(`-t numa-clients`) 6.5 prints 11 columns with percent signs, 7.0 without, 8.0 may print 9. One client is a
physical proximity domain of a VM. No public batch file of esxtop (`esxtop -b`) has NUMA columns, so
their names are assumed: those of the screen, or with the words NUMA and home, local, remote or migrations.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vnuma.logs.pasted import sources

_COUNTED = re.compile(r"^\s*(?P<n>\d{1,6})\s+(?P<name>PCPU|core|package|NUMA node)s?\s*$", re.ASCII)
_NAMED = re.compile(
    r"^\s*(?P<name>CPU Packages|CPU Cores|CPU Threads|NUMA Node Count|Physical Memory):\s*(?P<n>\d{1,18})\b",
    re.ASCII,
)
_NAMES: Mapping[str, str] = {
    **{"PCPU": "threads", "core": "cores", "package": "packages", "NUMA node": "numa_nodes"},
    **{"CPU Packages": "packages", "CPU Cores": "cores", "CPU Threads": "threads"},
    **{"NUMA Node Count": "numa_nodes", "Physical Memory": "memory_mb"},
}
_MIB = 1 << 20


HostNodes = dict[str, int]
"""A host as a tool counts it, by the names of `_NAMES`. More nodes than packages: sub-NUMA clusters."""


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
        yield {"packages": counts["cpu packages"], "numa_nodes": counts["numa nodes"]}


def ncpus(text: str) -> Iterator[HostNodes]:
    """`sched-stats -t ncpus`, one for each host in the text."""
    return _hosts(text, _COUNTED)


def esxcli(text: str) -> Iterator[HostNodes]:
    """`esxcli hardware cpu global get` and `memory get`, one for each host in the text."""
    return _hosts(text, _NAMED)


def _hosts(text: str, pattern: re.Pattern[str]) -> Iterator[HostNodes]:
    def read(line: str) -> tuple[str, int] | None:
        if not (found := pattern.match(line)):
            return None
        name, number = _NAMES[found["name"]], int(found["n"])
        return name, number // _MIB if name == "memory_mb" else number

    for part in sources(text.splitlines(), lambda line: (found := read(line)) and found[0]):
        found = dict(filter(None, map(read, part)))
        if {"packages", "numa_nodes"} & found.keys():
            yield found


_CLIENTS = ("groupname", "clientid", "homenode")
_CNODE = ("groupname", "clientid", "nodeid", "memorypct")
_PNODE = ("nodeid", "nvcpu", "freemem")


def numa_clients(text: str) -> list[dict[str, object]]:
    """The rows of every table of clients: memory in KB, None for a column that the table lacks."""
    key = {"group_id": "groupid", "client_id": "clientid", "home_node": "homenode"}
    worlds = {"n_worlds": "nworlds", "vmm_worlds": "vmmworlds"}
    memory = {"local_kb": "localmem", "remote_kb": "remotemem"}
    local = {"curr_local": "currlocal", "cumm_local": "cummlocal"}
    return [
        {"group_name": row["groupname"], "affinity": row.get("affinity", ""), **figures}
        for row, figures in _rows(text, _CLIENTS, key, worlds | memory | local)
    ]


def client_nodes(text: str) -> list[dict[str, object]]:
    """The share of each client's time and memory (percent, KB) on each physical node."""
    key = {"group_id": "groupid", "client_id": "clientid", "node_id": "nodeid"}
    figures = {"time_pct": "timepct", "memory_kb": "memory", "memory_pct": "memorypct"}
    return [row for _, row in _rows(text, _CNODE, key, figures)]


def physical_nodes(text: str) -> list[dict[str, object]]:
    """Each physical node: vCPUs placed on it, memory in KB. ESXi prints none for a single node."""
    figures = {"n_vcpu": "nvcpu", "free_kb": "freemem", "total_kb": "totalmem"}
    return [row for _, row in _rows(text, _PNODE, {"node_id": "nodeid"}, figures)]


def _rows(
    text: str, needed: tuple[str, ...], key: Mapping[str, str], figures: Mapping[str, str]
) -> Iterator[tuple[dict[str, str], dict[str, object]]]:
    """Each row as it stands and as numbers, without rows whose key is not readable."""
    for row in _tables(text, needed):
        numbers = {name: _whole(row.get(column)) for name, column in {**key, **figures}.items()}
        if all(numbers[name] is not None for name in key):
            yield row, dict(numbers)


def _tables(text: str, needed: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Rows under each header with the needed columns; a row must have as many fields as its header."""
    header: list[str] = []
    for line in _unfolded(text.splitlines()):
        fields = line.split()
        names = [name.lower().strip("%") for name in fields]
        if "nodeid" in names or "groupname" in names:
            header = names if set(needed) <= set(names) else []
        elif header and len(fields) == len(header):
            yield dict(zip(header, fields, strict=True))


def _unfolded(lines: list[str]) -> Iterator[str]:
    """The lines, joined in pairs where a terminal has folded a table's header, and so its rows.

    A row's first line may have lost the blanks at its end; its width is the header's.
    """
    width, at = 0, 0
    while at < len(lines):
        line, following = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
        if "groupName" in line:
            width = len(line) if _is_folded(line, following) else 0
        if width and line.strip():
            line, at = line.ljust(width) + following, at + 1
        elif not line.strip():
            width = 0
        yield line
        at += 1


def _is_folded(line: str, following: str) -> bool:
    """Whether a header goes on in the next line, which then has no figures."""
    names = {name.lower().strip("%") for name in (line + following).split()}
    known = any(set(needed) <= names for needed in (_CLIENTS, _CNODE))
    return known and bool(following.strip()) and not any(sign.isdigit() for sign in following)


def _whole(text: str | None) -> int | None:
    """An integer of reasonable length; None for anything else."""
    plain = (text or "").rstrip("%")
    return int(plain) if plain.isascii() and plain.isdecimal() and len(plain) <= 18 else None


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
    figures = {name: named.get(column, "") for name, column in _ON_SCREEN.items()}
    return _vm(before.get("GID", ""), " ".join(fields[at:-after]), figures)


_ON_SCREEN = {"nhn": "NHN", "nmig": "NMIG", "remote_mb": "NRMEM", "n_pct_l": "N%L", "local_mb": "NLMEM"}
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
    return MemoryScreen((), tuple(_vm(*key, figures) for key, figures in found.items()))


def _groups(header: list[str]) -> Iterator[tuple[int, tuple[str, str], str]]:
    """Column, group (id and name) and counter of what the file has of the memory of groups."""
    for at, title in enumerate(header):
        found = _GROUP.search(title)
        if found:
            yield at, (found[1], found[2]), found[3]


def _vm(gid: str, name: str, figures: Mapping[str, str]) -> VmMemory:
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
