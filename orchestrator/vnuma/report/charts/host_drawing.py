"""The host's NUMA nodes and logical CPUs, and those that affinity gave to the VM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import escape

from vnuma.analysis.wording import listed
from vnuma.domain.study.order import columns
from vnuma.domain.vm.plain_text import counted
from vnuma.report.charts.svg import Figure, inline
from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Vm
from vnuma.store.states import Outcome

_PER_ROW = 16
_SIDE, _STEP = 10, 14
_PAD, _HEAD, _GAP = 8, 22, 14
_NODE_WIDTH = _PER_ROW * _STEP + 2 * _PAD


@dataclass(frozen=True)
class HostNode:
    """A NUMA node of the host."""

    id: int
    cpus: tuple[int, ...]
    memory_mb: int


@dataclass(frozen=True)
class HostMap:
    """`affinity`: each set of logical CPUs that boots were pinned to, with its arms; () is none."""

    name: str
    nodes: tuple[HostNode, ...]
    affinity: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]


def host_map(loaded: LoadedRun, vm: Vm) -> HostMap | None:
    """From the stored facts of the host and of each valid boot; None if its nodes are unknown."""
    host = loaded.vm_facts(vm, "host")
    nodes = tuple(
        HostNode(node["id"], tuple(node["cpus"]), node["memory_mb"]) for node in host.get("numa_nodes") or ()
    )
    if not nodes:
        return None
    order = list(dict.fromkeys(arm for arm, _ in columns(loaded.study)))
    pinned: dict[tuple[int, ...], dict[str, None]] = defaultdict(dict)
    for attempt in loaded.attempts_of(vm, Outcome.VALID):
        settings = _settings(attempt.effective)
        if settings is not None:
            pinned[tuple(sorted(settings.get("cpuAffinity") or ()))][attempt.arm] = None
    return HostMap(
        str(host.get("name", vm.esxi_host)),
        nodes,
        tuple((cpus, tuple(sorted(arms, key=order.index))) for cpus, arms in pinned.items()),
    )


def host_figures(found: HostMap, *, key: str) -> list[Figure]:
    """One drawing per set of CPUs that arms were pinned to; one without any if there is none."""
    sets = found.affinity or (((), ()),)
    return [_figure(found, cpus, arms, f"{key}-{number}") for number, (cpus, arms) in enumerate(sets)]


def _figure(found: HostMap, cpus: Sequence[int], arms: Sequence[str], key: str) -> Figure:
    rows = max(-(-len(node.cpus) // _PER_ROW) for node in found.nodes)
    height = _HEAD + rows * _STEP + 2 * _PAD
    drawn = "".join(
        _node(node, index * (height + _GAP), height, frozenset(cpus))
        for index, node in enumerate(found.nodes)
    )
    total = len(found.nodes) * (height + _GAP) - _GAP
    title = f"Host {found.name}" + (f", arms {listed(arms)}" if arms else "")
    words = _words(found, cpus, arms)
    svg = (
        f'<svg class="topology host" width="{_NODE_WIDTH + 2}" height="{total + 2}" '
        f'viewBox="-1 -1 {_NODE_WIDTH + 2} {total + 2}">{drawn}</svg>'
    )
    return Figure(inline(svg, key, title, words), title, words)


def _node(node: HostNode, top: int, height: int, pinned: frozenset[int]) -> str:
    boxes = []
    for place, cpu in enumerate(node.cpus):
        x = _PAD + (place % _PER_ROW) * _STEP
        y = top + _HEAD + _PAD + (place // _PER_ROW) * _STEP
        kind = "pinned" if cpu in pinned else "cpu"
        boxes.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}"/>')
    label = f"host node {node.id}: {len(node.cpus)} CPUs, {node.memory_mb / 1024:.0f} GB"
    return (
        f'<rect class="node" x="0" y="{top}" width="{_NODE_WIDTH}" height="{height}" rx="4"/>'
        f'<text x="{_PAD}" y="{top + 16}">{escape(label)}</text>{"".join(boxes)}'
    )


def _words(found: HostMap, cpus: Sequence[int], arms: Sequence[str]) -> str:
    nodes = f"{counted(len(found.nodes), 'host NUMA node')} of {found.name}"
    if not arms:
        return f"{nodes}; where the VM ran is not known."
    if not cpus:
        return f"{nodes}; {listed(arms)} ran without CPU affinity: ESXi placed the VM."
    on = [
        f"{inside} on node {node.id}" for node in found.nodes if (inside := len(set(node.cpus) & set(cpus)))
    ]
    return f"{nodes}; {listed(arms)} pinned to {counted(len(cpus), 'logical CPU')} (filled): {listed(on)}."


def _settings(effective: object) -> Mapping[str, Any] | None:
    """vSphere's read-back after the boot; None if it was not stored."""
    found = effective.get("vsphere") if isinstance(effective, dict) else None
    return found if isinstance(found, dict) else None
