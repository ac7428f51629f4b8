"""NUMA tables of ESXi's `sched-stats`: columns are found by name, which differs by release.

Clients (`-t numa-clients`): 6.5 prints 11 columns with percent signs, 7.0 without, 8.0 may print 9. One
client is a physical proximity domain of a VM. Also memory by client (`-t numa-cnode`) and the host's nodes
(`-t numa-pnode`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

Row = dict[str, str]

_CLIENTS = ("groupname", "clientid", "homenode")
_CNODE = ("groupname", "clientid", "nodeid", "memorypct")
_PNODE = ("nodeid", "nvcpu", "freemem")


@dataclass(frozen=True)
class NumaClient:
    """One NUMA client. Memory in KB; percentages are None if the table lacks the column."""

    group_name: str
    group_id: int
    client_id: int
    home_node: int
    affinity: str
    n_worlds: int | None
    vmm_worlds: int | None
    local_kb: int | None
    remote_kb: int | None
    curr_local: int | None
    cumm_local: int | None


@dataclass(frozen=True)
class ClientNode:
    """The share of one client's time and memory (percent, KB) on one physical node."""

    group_id: int
    client_id: int
    node_id: int
    time_pct: int | None
    memory_kb: int | None
    memory_pct: int | None


@dataclass(frozen=True)
class PhysicalNode:
    """One physical NUMA node: vCPUs placed on it, memory in KB."""

    node_id: int
    n_vcpu: int | None
    free_kb: int | None
    total_kb: int | None


def numa_clients(text: str) -> tuple[NumaClient, ...]:
    """The readable rows of every table of clients in a text."""
    figures = ("nworlds", "vmmworlds", "localmem", "remotemem", "currlocal", "cummlocal")
    return tuple(
        NumaClient(row["groupname"], group, client, home, row.get("affinity", ""), *found)
        for row, (group, client, home), found in _rows(
            text, _CLIENTS, ("groupid", "clientid", "homenode"), figures
        )
    )


def client_nodes(text: str) -> tuple[ClientNode, ...]:
    """The rows of every table of clients by node."""
    key, figures = ("groupid", "clientid", "nodeid"), ("timepct", "memory", "memorypct")
    return tuple(ClientNode(*numbers, *found) for _, numbers, found in _rows(text, _CNODE, key, figures))


def physical_nodes(text: str) -> tuple[PhysicalNode, ...]:
    """The rows of every table of physical nodes. ESXi prints none for a single node."""
    figures = ("nvcpu", "freemem", "totalmem")
    return tuple(PhysicalNode(*node, *found) for _, node, found in _rows(text, _PNODE, ("nodeid",), figures))


def _rows(
    text: str, needed: tuple[str, ...], key: tuple[str, ...], figures: tuple[str, ...]
) -> Iterator[tuple[Row, list[int], list[int | None]]]:
    """Each row with its key and figures, without rows whose key is not readable."""
    for row in _tables(text, needed):
        numbers = [number for name in key if (number := _whole(row.get(name))) is not None]
        if len(numbers) == len(key):
            yield row, numbers, [_whole(row.get(name)) for name in figures]


def _tables(text: str, needed: tuple[str, ...]) -> Iterator[Row]:
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
