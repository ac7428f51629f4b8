"""Drawings to one scale: an arm's topologies as asked, predicted and seen, and the host's nodes and CPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import escape

from vnuma.domain.study.order import columns
from vnuma.domain.vm.facts import NumaNode
from vnuma.report.charts.svg import Figure, inline
from vnuma.report.model.arm_topologies import ArmTopology
from vnuma.report.model.model import LoadedRun
from vnuma.store.rows import Outcome, Vm
from vnuma.words.bounded_json import mapping
from vnuma.words.plain_text import counted, gigabytes, listed

_LEFT = 84
_SPAN = 232
_ROW = 24


def drawing(arm: ArmTopology, *, key: str) -> Figure:
    """Rows of sockets, vNUMA nodes predicted and seen, and SQL Server's CPU nodes if the guest has one."""
    vcpus, shape = arm.vcpus, arm.shape
    has_sql = bool(arm.sql_sizes) or not arm.seen
    last = 5 if has_sql else 4
    sockets = (shape.cores_per_socket,) * shape.sockets if shape else ()
    rows = [
        ("sockets", (_boxes(sockets, vcpus, 0, "socket") or _unknown(0)) + _vcpus(vcpus)),
        ("predicted", _boxes(arm.predicted, vcpus, 1, "predicted") or _unknown(1)),
        ("vmware.log", _boxes(arm.logged_sizes, vcpus, 2, "logged") or _unknown(2, "not evaluated")),
        ("guest saw", _boxes(arm.seen_sizes, vcpus, 3, "seen") or _unknown(3, _nodes(arm))),
        *([("SQL nodes", _boxes(arm.sql_sizes, vcpus, 4, "sql") or _unknown(4))] if has_sql else []),
        (
            "on the host",
            _boxes(arm.physical_sizes, vcpus, last, "physical") or _unknown(last, "not evaluated"),
        ),
    ]
    texts = "".join(f'<text x="0" y="{_ROW * i + 15}">{name}</text>' for i, (name, _) in enumerate(rows))
    title = f"Topology of arm {arm.arm}"
    words = (
        f"{counted(shape.sockets, 'socket')} of {counted(shape.cores_per_socket, 'core')}"
        if shape
        else "sockets chosen by ESXi, not known"
    )
    words += (
        f"; vNUMA nodes predicted {arm.predicted_words}, by vmware.log {arm.log_words}, seen by the guest "
        f"{arm.seen_words}"
    )
    words += f"; SQL CPU nodes {arm.sql_words}." if has_sql else "."
    width, height = _LEFT + _SPAN + 2, _ROW * len(rows)
    svg = (
        f'<svg class="topology" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"{texts}{''.join(boxes for _, boxes in rows)}</svg>"
    )
    return Figure(inline(svg, key, title, words), title, words)


def _nodes(arm: ArmTopology) -> str:
    """What a guest showed of its nodes where their sizes are not stored."""
    (count, _), *others = arm.seen or ((0, 0),)
    return counted(count, "node") if count and not others else arm.seen_words


def _boxes(sizes: Sequence[int], vcpus: int, row: int, kind: str) -> str:
    """A box for each size, side by side, to the scale of all vCPUs."""
    made, at = [], 0
    for size in sizes:
        left, width = _LEFT + _SPAN * at / vcpus, _SPAN * size / vcpus
        made.append(
            f'<rect class="{kind}" x="{left + 1:.1f}" y="{_ROW * row + 2}" width="{max(1.5, width - 2):.1f}" '
            f'height="{_ROW - 6}" rx="3"/>'
        )
        at += size
    return "".join(made)


def _vcpus(vcpus: int) -> str:
    """A mark for each vCPU, if there is room."""
    step = _SPAN / vcpus
    if step < 6:
        return ""
    side = min(8.0, step - 4)
    return "".join(
        f'<rect class="vcpu" x="{_LEFT + step * (i + 0.5) - side / 2:.1f}" y="{11 - side / 2:.1f}" '
        f'width="{side:.1f}" height="{side:.1f}"/>'
        for i in range(vcpus)
    )


def _unknown(row: int, words: str = "not known") -> str:
    return f'<text class="unknown" x="{_LEFT + 2}" y="{_ROW * row + 15}">{words}</text>'


_PER_ROW = 16
_SIDE, _STEP = 10, 14
_PAD, _HEAD, _GAP = 8, 22, 14
_NODE_WIDTH = _PER_ROW * _STEP + 2 * _PAD


@dataclass(frozen=True)
class HostMap:
    """`affinity`: each set of logical CPUs that boots were pinned to, with its arms; () is none."""

    name: str
    nodes: tuple[NumaNode, ...]
    affinity: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]


def host_map(loaded: LoadedRun, vm: Vm) -> HostMap | None:
    """From the stored facts of the host and of each valid boot; None if its nodes are unknown."""
    host = loaded.vm_facts(vm, "host")
    nodes = tuple(
        NumaNode(node["id"], tuple(node["cpus"]), node["memory_mb"]) for node in host.get("numa_nodes") or ()
    )
    if not nodes:
        return None
    order = list(dict.fromkeys(arm for arm, _ in columns(loaded.study)))
    pinned: dict[tuple[int, ...], dict[str, None]] = defaultdict(dict)
    for attempt in loaded.attempts_of(vm, Outcome.VALID):
        settings = mapping(attempt.effective).get("vsphere")  # the read-back after the boot
        if isinstance(settings, Mapping):
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


def _node(node: NumaNode, top: int, height: int, pinned: frozenset[int]) -> str:
    boxes = []
    for place, cpu in enumerate(node.cpus):
        x = _PAD + (place % _PER_ROW) * _STEP
        y = top + _HEAD + _PAD + (place // _PER_ROW) * _STEP
        kind = "pinned" if cpu in pinned else "cpu"
        boxes.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}"/>')
    label = f"host node {node.id}: {len(node.cpus)} CPUs, {gigabytes(node.memory_mb)}"
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
