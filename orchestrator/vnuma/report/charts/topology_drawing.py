"""What an arm asked for, what was predicted and what the guest saw, drawn to one scale."""

from __future__ import annotations

from collections.abc import Sequence

from vnuma.domain.topology.topology import Topology
from vnuma.domain.vm.plain_text import counted
from vnuma.report.charts.svg import Figure, inline
from vnuma.report.model.arm_topologies import ArmTopology

_LEFT = 84
_SPAN = 232
_ROW = 24


def drawing(arm: ArmTopology, *, key: str) -> Figure:
    """Rows of sockets, vNUMA nodes predicted and seen, and SQL Server's CPU nodes."""
    vcpus, shape = arm.vcpus, arm.shape
    sockets = (shape.cores_per_socket,) * shape.sockets if shape else ()
    rows = [
        ("sockets", (_boxes(sockets, vcpus, 0, "socket") or _unknown(0)) + _vcpus(vcpus)),
        ("predicted", _boxes(arm.predicted, vcpus, 1, "predicted") or _unknown(1)),
        ("vmware.log", _boxes(arm.logged_sizes, vcpus, 2, "logged") or _unknown(2, "not evaluated")),
        ("guest saw", _boxes(arm.seen_sizes, vcpus, 3, "seen") or _unknown(3)),
        ("SQL nodes", _boxes(arm.sql_sizes, vcpus, 4, "sql") or _unknown(4)),
        ("on the host", _boxes(arm.physical_sizes, vcpus, 5, "physical") or _unknown(5, "not evaluated")),
    ]
    texts = "".join(f'<text x="0" y="{_ROW * i + 15}">{name}</text>' for i, (name, _) in enumerate(rows))
    title = f"Topology of arm {arm.arm}"
    words = (
        f"{_sockets_words(shape)}; "
        f"vNUMA nodes predicted {arm.predicted_words}, by vmware.log {arm.log_words}, seen by the guest "
        f"{arm.seen_words}; SQL CPU nodes {arm.sql_words}."
    )
    width, height = _LEFT + _SPAN + 2, _ROW * len(rows)
    svg = (
        f'<svg class="topology" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"{texts}{''.join(boxes for _, boxes in rows)}</svg>"
    )
    return Figure(inline(svg, key, title, words), title, words)


def _sockets_words(shape: Topology | None) -> str:
    if shape is None:
        return "sockets chosen by ESXi, not known"
    return f"{counted(shape.sockets, 'socket')} of {counted(shape.cores_per_socket, 'core')}"


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
