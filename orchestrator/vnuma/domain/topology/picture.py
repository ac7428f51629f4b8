"""A VM's topology on one host as SVG: host nodes, sockets, vNUMA nodes, SQL Server's nodes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate

from vnuma.domain.topology.forecast import Forecast
from vnuma.domain.topology.licence import UNLIMITED
from vnuma.domain.vm.facts import HostFacts
from vnuma.words.plain_text import counted, escaped, gigabytes

_TINTS = (("#17496f", "#7db8e8"), ("#b35900", "#f0a04b"), ("#05643a", "#6fd3a0"), ("#6b3fa0", "#c4a1f0"))
"""Colours of vNUMA nodes in turn, on light and on dark paper."""


def _colours(dark: bool) -> str:
    paper, ink, muted, line, wash, warn = (
        ("#14171a", "#e8eaed", "#a5adb6", "#565d66", "#1c2126", "#ff9b66")
        if dark
        else ("#ffffff", "#17191c", "#565d66", "#9aa3ad", "#f4f6f8", "#9c3a00")
    )
    tints = (f".vt .n{index}{{fill:{pair[dark]}}}" for index, pair in enumerate(_TINTS))
    return (
        f".vt .paper{{fill:{paper}}}.vt text{{fill:{ink}}}.vt .muted{{fill:{muted}}}.vt .warn{{fill:{warn}}}"
        f".vt .box{{fill:{wash};stroke:{line}}}.vt .free{{fill:{paper};stroke:{line}}}"
        f".vt .rail{{fill:{paper};stroke:{line}}}.vt .used{{fill:{muted}}}.vt .over{{fill:{warn}}}"
        f".vt .off{{fill:{paper};stroke:{warn};stroke-dasharray:2 1.5}}{''.join(tints)}"
    )


STYLE = (
    ".vt text{font:12px system-ui,'Segoe UI',Roboto,sans-serif}.vt .title{font-weight:600;font-size:15px}"
    f".vt .head{{font-weight:600;font-size:13px}}{_colours(False)}"
    f"@media screen and (prefers-color-scheme:dark){{{_colours(True)}}}"
)
"""The picture's style, always the same text, so that a page can permit it by its hash."""

_MARGIN, _GAP, _PAD, _LINE = 16, 8, 8, 17
_LETTER = 7.2
"""Width of a letter in pixels, with room to spare."""

_Box = tuple[str, str, Sequence[str], float | None]
"""A group of CPUs: its label, a second line, the class of each CPU, and the share of memory, or None."""


def topology_title(seen: Forecast) -> str:
    """The picture in a sentence, for who does not see it."""
    nodes = counted(seen.prediction.vnuma_nodes, "vNUMA node")
    what = f"{seen.topology.vcpus} vCPUs ({seen.topology}) on {seen.hosts[0]}"
    return f"{what}: {nodes}, {seen.confidence} confidence"


def topology_svg(
    seen: Forecast, host: HostFacts, memory_mb: int, *, width: int = 720, simulated: str = ""
) -> str:
    """One VM's topology as predicted on one host; `simulated` is the banner of a lab's host."""
    page = _Page(width)
    vcpus = seen.topology.vcpus
    nodes = counted(seen.prediction.vnuma_nodes, "vNUMA node")
    title = topology_title(seen)
    page.text(title, "title")
    if simulated:
        page.text(simulated, "warn head")
    owner = [node for node, size in enumerate(seen.prediction.node_sizes) for _ in range(size)]
    kinds = [f"n{node % len(_TINTS)}" for node in owner]
    has = f"{counted(len(host.numa_nodes), 'NUMA node')} of {counted(host.cores_per_node, 'core')}"
    page.group(f"Host, ESXi {host.release.version}: {has}", _host_boxes(seen, host, memory_mb, kinds))
    shape = seen.topology
    page.group(
        f"VM: {counted(shape.sockets, 'socket')} of {counted(shape.cores_per_socket, 'core')}",
        _boxes([shape.cores_per_socket] * shape.sockets, kinds, "Socket"),
    )
    page.group(f"Guest: {nodes}", _boxes(seen.prediction.node_sizes, kinds, "vNUMA node"))
    used = [kind if place < seen.by_sql.cores else "off" for place, kind in enumerate(kinds)]
    page.group(
        f"SQL Server: {counted(len(seen.sql_node_sizes), 'CPU node')}",
        _boxes(seen.sql_node_sizes, used, "SQL node"),
    )
    for text, kind in _notes(seen, vcpus):
        page.text(text, kind)
    return page.document(title)


def _notes(seen: Forecast, vcpus: int) -> Iterator[tuple[str, str]]:
    """The key, and what is unused, remote or impossible."""
    yield "Colour: the vNUMA node of a vCPU. Hollow: a free core. ESXi chooses the host nodes.", "muted"
    if seen.by_sql.cores < min(vcpus, UNLIMITED):
        yield f"Dashed: {vcpus - seen.by_sql.cores} vCPUs that SQL Server leaves unused.", "warn"
    if seen.remote:
        yield f"{seen.remote} of its memory is remote.", "warn"
    if seen.too_wide:
        yield "The VM has more vCPUs than the host has cores.", "warn"
    if seen.too_large:
        yield "The VM has more memory than the host.", "warn"
    for why in filter(None, (seen.stays_off, seen.not_allowed, seen.not_started)):
        yield f"{why}.", "warn"


def _boxes(sizes: Sequence[int], kinds: Sequence[str], name: str) -> list[_Box]:
    starts = accumulate(sizes, initial=0)
    return [
        (f"{name} {index}", counted(size, "vCPU"), kinds[start : start + size], None)
        for index, (start, size) in enumerate(zip(starts, sizes, strict=False))
    ]


def _host_boxes(seen: Forecast, host: HostFacts, memory_mb: int, kinds: Sequence[str]) -> list[_Box]:
    """The host's nodes with the VM on them: each NUMA client, largest first, on the node with most room."""
    clients = seen.prediction.clients or seen.prediction.node_sizes
    starts = list(accumulate(clients, initial=0))
    on: dict[int, list[int]] = {place: [] for place in range(len(host.numa_nodes))}
    for client in sorted(range(len(clients)), key=lambda one: -clients[one]):
        least = min(on, key=lambda place: sum(clients[one] for one in on[place]))
        on[least].append(client)
    found: list[_Box] = []
    for place, node in enumerate(host.numa_nodes):
        mine = [kind for one in sorted(on[place]) for kind in kinds[starts[one] : starts[one] + clients[one]]]
        part = memory_mb * len(mine) / seen.topology.vcpus
        idle = "may hold remote memory" if seen.remote_mb else "not used"
        words, share = f"{len(mine)} of {host.cores_per_node} cores" if mine else idle, None
        if node.memory_mb and mine:
            share = part / node.memory_mb
            words += f", {gigabytes(part)} of {gigabytes(node.memory_mb)}"
        free = ["free"] * (host.cores_per_node - len(mine))
        found.append((f"Host node {node.id}", words, [*mine[: host.cores_per_node], *free], share))
    return found


class _Page:
    """Lines and groups of boxes from top to bottom."""

    def __init__(self, width: int) -> None:
        self._width, self._room = width, width - 2 * _MARGIN
        self._parts: list[str] = []
        self._y = _MARGIN

    def text(self, text: str, kind: str) -> None:
        """A paragraph, wrapped at words."""
        letters = int(self._room / (_LETTER * (1.45 if "title" in kind else 1.0)))
        for line in textwrap.wrap(text, max(20, letters)):
            self._y += _LINE
            self._put(f'<text class="{kind}" x="{_MARGIN}" y="{self._y - 4}">{_safe(line)}</text>')

    def group(self, head: str, boxes: Sequence[_Box]) -> None:
        """A headed row of boxes, in as many lines as they need."""
        self._y += 10
        self.text(head, "head")
        self._y += 3
        most = max(len(cpus) for _, _, cpus, _ in boxes)
        total = sum(len(cpus) for _, _, cpus, _ in boxes)
        side = 11 if total <= 160 else 7 if total <= 512 else 4
        step = side + 3 if side > 4 else side + 1
        named = len(boxes) <= 16
        label = max(len(text) for box in boxes for text in box[:2]) * _LETTER if named else 0
        least = max(label, min(most, 4) * step) + 2 * _PAD
        natural = max(least, most * step - 3 + 2 * _PAD)
        row = max(1, min(len(boxes), int((self._room + _GAP) / (least + _GAP))))
        row = -(-len(boxes) // -(-len(boxes) // row))
        wide = min(natural, (self._room - (row - 1) * _GAP) / row)
        columns = max(1, int((wide - 2 * _PAD + 3) / step))
        columns = -(-most // -(-most // columns))
        bar = 14 if any(box[3] is not None for box in boxes) else 0
        tall = -(-most // columns) * step + 2 * _PAD - 3 + (2 * _LINE if named else 0) + bar
        for place, box in enumerate(boxes):
            x = _MARGIN + place % row * (wide + _GAP)
            y = self._y + place // row * (tall + _GAP)
            self._put(f'<rect class="box" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{tall}" rx="4"/>')
            self._inside(box, x + _PAD, y + _PAD, wide - 2 * _PAD, (columns, side, step), named)
        self._y += -(-len(boxes) // row) * (tall + _GAP)

    def _inside(
        self, box: _Box, x: float, y: int, wide: float, grid: tuple[int, int, int], named: bool
    ) -> None:
        name, words, cpus, share = box
        columns, side, step = grid
        if named:
            self._put(f'<text x="{x:.1f}" y="{y + 10}">{_safe(name)}</text>')
            self._put(f'<text class="muted" x="{x:.1f}" y="{y + 10 + _LINE}">{_safe(words)}</text>')
            y += 2 * _LINE
        if share is not None:
            self._put(f'<rect class="rail" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="7" rx="2"/>')
            kind = "over" if share > 1 else "used"
            filled = wide * min(1.0, share)
            self._put(f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{filled:.1f}" height="7" rx="2"/>')
            y += 14
        for place, kind in enumerate(cpus):
            left, top = x + place % columns * step, y + place // columns * step
            self._put(
                f'<rect class="{kind}" x="{left:.1f}" y="{top}" width="{side}" height="{side}" rx="1"/>'
            )

    def _put(self, part: str) -> None:
        self._parts.append(part)

    def document(self, title: str) -> str:
        """The whole picture."""
        height = self._y + _MARGIN
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="vt" role="img" aria-label="{_safe(title)}" '
            f'width="{self._width}" height="{height}" viewBox="0 0 {self._width} {height}">'
            f"<style>{STYLE}</style>"
            f'<rect class="paper" width="{self._width}" height="{height}"/>{"".join(self._parts)}</svg>\n'
        )


def _safe(text: str) -> str:
    """Text for XML, which has no place for control characters."""
    return escape(escaped(text))
