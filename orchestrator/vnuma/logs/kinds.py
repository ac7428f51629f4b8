"""Recognise the kinds of a text and parse each source in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import asdict, dataclass, replace
from typing import Any

from vnuma.logs.errorlog import starts
from vnuma.logs.guest_tools import coreinfo, lscpu, lstopo, numactl
from vnuma.logs.host_tools import (
    batch,
    client_nodes,
    esxcli,
    memory_screen,
    ncpus,
    numa_clients,
    physical_nodes,
    vsish,
)
from vnuma.logs.pasted import cleaned
from vnuma.logs.vmware import VmwareLog, power_ons, read_cookie

Document = dict[str, Any]

_TOPOLOGY = re.compile(
    r"numa\.|numvcpus|cpuid\.corespersocket|vcpu\.hotadd|sched\.(cpu|mem)\.|memsize|displayname"
)


@dataclass(frozen=True)
class Reading:
    """One source of a recognised kind and its figures, without unknown ones; of a vmware.log also the log."""

    kind: str
    figures: Document
    log: VmwareLog | None = None


def read_any(text: str) -> tuple[Reading, ...]:
    """Every source in a pasted text, by kind; empty for unknown kinds. Raises nothing."""
    plain = cleaned(text)
    found = list(_logs_of_vms(plain))
    for kind, read in _KINDS.items():
        found += [Reading(kind, figures) for one in read(plain) if (figures := _plain(one)) is not None]
    return tuple(found)


def _plain(value: object) -> Document | None:
    """A dataclass as a document of its known values; None without any."""
    document = value if isinstance(value, dict) else asdict(value)  # type: ignore[call-overload]
    known = {
        name: item
        for name, item in document.items()
        if item is not None and item is not False and not (isinstance(item, Sized) and not item)
    }
    return known or None


def _logs_of_vms(text: str) -> Iterator[Reading]:
    """A reading for each VM: its last power-on, with the earlier ones named."""
    by_vm: dict[str, list[VmwareLog]] = {}
    name = ""
    for log in power_ons(text):
        name = log.settings.get("displayname", name)
        by_vm.setdefault(name, []).append(log)
    for name, logs in by_vm.items():
        figures = _plain(_vmware(logs[-1]))
        if figures:
            others = tuple(other for other in by_vm if other != name)
            earlier = tuple({"began": log.began, "vpds": log.vpds} for log in logs[:-1])
            more = {"earlier_power_ons": earlier, "other_vms": others}
            yield Reading("vmware.log", figures | (_plain(more) or {}), logs[-1])


def _vmware(log: VmwareLog) -> Document:
    kept = {key: value for key, value in log.settings.items() if _TOPOLOGY.match(key)}
    if not (log.lines or kept):
        return {}
    return asdict(replace(log, settings=kept)) | {
        "hot_add": log.hot_add,
        "cookie": read_cookie(kept.get("numa.autosize.cookie", "")),
    }


def _servers(text: str) -> Iterator[Document]:
    """For each server its last start, with the times of the earlier ones."""
    by_server: dict[str, list[Any]] = {}
    name = ""
    for start in starts(text):
        name = start.server or name
        by_server.setdefault(name, []).append(start)
    for found in by_server.values():
        earlier = tuple(start.started or "no time" for start in found[:-1])
        document = asdict(found[-1])
        recognised = any(value for key, value in document.items() if key not in ("started", "server"))
        yield document | {"earlier_starts": earlier} if recognised else {}


def _rows(read: Callable[[str], list[Document]]) -> Callable[[str], list[Document]]:
    return lambda text: [{"rows": read(text)}]


_KINDS: dict[str, Callable[[str], Iterable[object]]] = {
    "sched-stats -t numa-clients": _rows(numa_clients),
    "sched-stats -t numa-cnode": _rows(client_nodes),
    "sched-stats -t numa-pnode": _rows(physical_nodes),
    "sched-stats -t ncpus": ncpus,
    "esxcli hardware": esxcli,
    "esxtop, memory": lambda text: [memory_screen(text)],
    "esxtop, batch": lambda text: filter(None, [batch(text)]),
    "vsish": vsish,
    "Coreinfo": coreinfo,
    "lscpu": lscpu,
    "numactl -H": numactl,
    "lstopo": lstopo,
    "SQL Server error log": _servers,
}
