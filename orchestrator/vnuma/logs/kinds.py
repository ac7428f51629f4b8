"""Recognise the kind of a text and parse it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sized
from dataclasses import asdict, dataclass, replace
from typing import Any

from vnuma.logs.errorlog import read_errorlog
from vnuma.logs.esxtop import host_nodes, memory_screen
from vnuma.logs.guest_tools import coreinfo, lscpu, lstopo
from vnuma.logs.sched_stats import client_nodes, numa_clients, physical_nodes
from vnuma.logs.vmware import read_cookie, read_vmware_log

Document = dict[str, Any]

_TOPOLOGY = re.compile(
    r"numa\.|numvcpus|cpuid\.corespersocket|vcpu\.hotadd|sched\.(cpu|mem)\.|memsize|displayname"
)


@dataclass(frozen=True)
class Reading:
    """A recognised kind of text and its figures, without unknown ones."""

    kind: str
    figures: Document


def read_any(text: str) -> tuple[Reading, ...]:
    """Everything that a text is recognised as; empty for an unknown kind. Raises nothing."""
    return tuple(
        Reading(kind, figures) for kind, read in _KINDS.items() if (figures := _plain(read(text))) is not None
    )


def _plain(value: object) -> Document | None:
    """A dataclass as a document of its known values; None without any."""
    document = value if isinstance(value, dict) else asdict(value)  # type: ignore[call-overload]
    known = {
        name: item
        for name, item in document.items()
        if item is not None and item is not False and not (isinstance(item, Sized) and not item)
    }
    return known or None


def _vmware(text: str) -> Document:
    log = read_vmware_log(text)
    kept = {key: value for key, value in log.settings.items() if _TOPOLOGY.match(key)}
    if not (log.lines or kept):
        return {}
    cookie = read_cookie(kept.get("numa.autosize.cookie", ""))
    return asdict(replace(log, settings=kept)) | {
        "hot_add": log.hot_add,
        "cookie": asdict(cookie) if cookie else None,
    }


def _rows(read: Callable[[str], tuple[Any, ...]]) -> Callable[[str], Document]:
    return lambda text: {"rows": [asdict(row) for row in read(text)]}


_KINDS: dict[str, Callable[[str], object]] = {
    "vmware.log": _vmware,
    "sched-stats -t numa-clients": _rows(numa_clients),
    "sched-stats -t numa-cnode": _rows(client_nodes),
    "sched-stats -t numa-pnode": _rows(physical_nodes),
    "esxtop, memory": memory_screen,
    "vsish": lambda text: host_nodes(text) or {},
    "Coreinfo": coreinfo,
    "lscpu": lscpu,
    "lstopo": lstopo,
    "SQL Server error log": read_errorlog,
}
