"""The hosts on which a VM runs or may run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vnuma.domain.vm.facts import HostFacts, NumaNode, Release, VmFacts


@dataclass(frozen=True)
class VmLocation:
    """`hosts` starts with the VM's own; `unread` names unreadable hosts of its cluster.

    `unseen` names unknown settings of the VM, as in an export.
    """

    hosts: tuple[HostFacts, ...]
    vm: VmFacts | None = None
    unread: tuple[str, ...] = ()
    simulated: str | None = None
    unseen: tuple[str, ...] = ()


_SPEC = re.compile(
    r"(?P<nodes>[1-9]\d{0,2})x(?P<cores>[1-9]\d{0,3})(?:/(?P<memory>[1-9]\d{0,6}))?(?:@(?P<release>\d.*))?"
)
# 8, 8.0, 8.0.3, 8.0U3, 8.0 U3b, 8.0 Update 3; VMware ESXi, 8.0.3, 24022510, as vCenter shows it
_RELEASE = re.compile(
    r"(?:(?:VMware )?ESXi,? ?)?(?P<release>\d+(?:\.\d+)?)"
    r"(?:\.(?P<third>\d+)| ?U(?:pdate ?)?(?P<update>\d)[a-z]?)?"
    r"(?:,? (?:build[- ])?(?P<build>\d{5,12}))?",
    re.IGNORECASE,
)


def parse_release(text: str) -> Release:
    """The ESXi release that `text` names: 8.0, 8.0.3, or its update as VMware writes it (8.0U3).

    The third number is the update from 7.0 on; 6.7 Update 3 calls itself 6.7.0. Raises ValueError with a
    sentence.
    """
    match = _RELEASE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"'{text}' is not an ESXi release; write it as 8.0, 8.0.3 or 8.0U3")
    release = Release(match["release"] if "." in match["release"] else f"{match['release']}.0")
    third = match["third"] or (match["update"] if release.key >= (7, 0) else None)
    return Release(f"{release.version}.{third}" if third else release.version, match["build"] or "")


def parse_host(text: str, release: str, threads_per_core: int = 2) -> HostFacts:
    """The host that `text` describes: `2x16/96@7.0` is two NUMA nodes of 16 cores and 96 GB, ESXi 7.0.

    `release` is used if the text has none, and is part of the host's name.

    Missing memory is 0, which means unknown. Predictions assume a socket per node and no host option; rules
    about either are not evaluated. Raises ValueError with a sentence.
    """
    match = _SPEC.fullmatch(text.strip())
    if not match or (match["release"] and not _RELEASE.fullmatch(match["release"])):
        raise ValueError(
            f"'{text}' is not a host; write NODESxCORES, with /GB per node and @ESXi if known, as in "
            "2x16/96@7.0"
        )
    nodes, cores, memory_gb = int(match["nodes"]), int(match["cores"]), int(match["memory"] or 0)
    width = cores * threads_per_core
    return HostFacts(
        moid=text,
        name=text if match["release"] else f"{text}@{release}",
        release=parse_release(match["release"] or release),
        vendor="",
        model="",
        cpu_model="",
        bios="",
        packages=nodes,
        cores=nodes * cores,
        threads=nodes * width,
        memory_mb=nodes * memory_gb * 1024,
        advanced={},
        numa_nodes=tuple(
            NumaNode(node, tuple(range(node * width, (node + 1) * width)), memory_gb * 1024)
            for node in range(nodes)
        ),
        numa_reported=True,
        described=True,
    )
