"""Good VM sizes on a host as a picture: each size is a numbered box, 16 sizes a row."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from markupsafe import escape

from vnuma.domain.topology.forecast import Span, even_everywhere, is_even, ranges, spans_by_hosts
from vnuma.report.charts.pictures import palette
from vnuma.report.charts.svg import FONT

if TYPE_CHECKING:
    from vnuma.domain.topology.forecast import Forecast

_PER_ROW = 16
_BOX, _STEP = 40, 44
_MARGIN = 28
_WIDTH = _PER_ROW * _STEP + 2 * _MARGIN
_LINE = 20
_LETTERS = 100
_KEY = (
    "Filled: every vNUMA node has the same number of vCPUs. Outlined: uneven nodes. Dashed: more vCPUs than "
    "the host has cores. Dot: part of the memory is remote. Below each size: its vNUMA nodes, ? where "
    "documents disagree."
)


def sizes_svg(rows: Sequence[Forecast], title: str, conditions: str, simulated: str) -> str:
    """An SVG document for light paper: for each host the boxes, and its ranges as text.

    `conditions` stand below the title; `simulated` is the banner if hosts are simulated.
    """
    found = spans_by_hosts(rows)
    page = _Page()
    page.text(title, "title")
    for kind, text in (("simulated", simulated), ("note", conditions), ("note", _KEY)):
        page.paragraph(text, kind)
    for hosts, spans in found.items():
        page.gap()
        page.paragraph(f"On {', '.join(hosts)}", "head")
        page.boxes([row for row in rows if hosts[0] in row.hosts])
        for span in spans:
            page.paragraph(_words(span), "note")
    if len(found) > 1:
        page.gap()
        page.paragraph(f"Even on every host: {ranges(even_everywhere(found.values())) or 'none'}", "head")
    return page.document(title, conditions)


def _words(span: Span) -> str:
    if not span.fits:
        return f"{ranges(span.vcpus)} vCPUs: more than the host has cores"
    even = "all" if span.even == span.vcpus else ranges(span.even) or "none"
    nodes = f"{span.nodes} vNUMA node{'' if span.nodes == '1' else 's'}"
    sure = f"confidence {span.confidence}; memory {span.memory}"
    return f"{ranges(span.vcpus)} vCPUs: {nodes}; even: {even}; {sure}"


class _Page:
    """Lines and boxes from top to bottom."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._y = _MARGIN

    def gap(self) -> None:
        self._y += 12

    def text(self, text: str, kind: str) -> None:
        self._y += _LINE
        self._parts.append(f'<text class="{kind}" x="{_MARGIN}" y="{self._y - 5}">{escape(text)}</text>')

    def paragraph(self, text: str, kind: str) -> None:
        for line in textwrap.wrap(text, _LETTERS):
            self.text(line, kind)

    def boxes(self, rows: Sequence[Forecast]) -> None:
        self._y += 6
        for place, row in enumerate(rows):
            x = _MARGIN + place % _PER_ROW * _STEP
            self._parts.extend(_box(row, x, self._y + place // _PER_ROW * _STEP))
        self._y += -(-len(rows) // _PER_ROW) * _STEP + 6

    def document(self, title: str, conditions: str) -> str:
        height = self._y + _MARGIN
        colours = palette("light")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}"><title>{escape(title)}</title>'
            f"<desc>{escape(conditions)}</desc><style>{_style(colours)}</style>"
            f'<rect class="paper" width="{_WIDTH}" height="{height}"/>{"".join(self._parts)}</svg>\n'
        )


def _box(row: Forecast, x: int, y: int) -> Iterator[str]:
    vcpus = sum(row.prediction.node_sizes)
    kind = "none" if row.impossible else "even" if is_even(row) else "uneven"
    yield f'<rect class="{kind}" x="{x}" y="{y}" width="{_BOX}" height="{_BOX}" rx="4"/>'
    middle = x + _BOX // 2
    yield f'<text class="size {kind}" x="{middle}" y="{y + 20}">{vcpus}</text>'
    if row.impossible:
        return
    nodes = "?" if row.prediction.alternatives else str(row.prediction.vnuma_nodes)
    yield f'<text class="nodes {kind}" x="{middle}" y="{y + 33}">{nodes}</text>'
    if row.remote_mb:
        yield f'<circle class="{kind}" cx="{x + _BOX - 6}" cy="{y + 6}" r="3"/>'


def _style(colours: dict[str, str]) -> str:
    ink, muted, paper, ours, warn = (colours[name] for name in ("ink", "muted", "paper", "ours", "warn"))
    return (
        f"text {{ font: 12px {FONT}; fill: {ink}; }}"
        f"text.title {{ font: bold 16px {FONT}; }} text.head {{ font: bold 13px {FONT}; }}"
        f"text.simulated {{ font: bold 12px {FONT}; fill: {warn}; }} text.note {{ fill: {muted}; }}"
        f"text.size {{ font: bold 13px {FONT}; text-anchor: middle; }}"
        f"text.nodes {{ font: 11px {FONT}; text-anchor: middle; }}"
        f"text.even {{ fill: {paper}; }} text.none {{ fill: {muted}; font-weight: normal; }}"
        f"rect.paper {{ fill: {paper}; }} rect.even {{ fill: {ours}; }}"
        f"rect.uneven {{ fill: none; stroke: {ours}; stroke-width: 1.5; }}"
        f"rect.none {{ fill: none; stroke: {muted}; stroke-dasharray: 3 3; }}"
        f"circle.even {{ fill: {paper}; }} circle.uneven {{ fill: {ours}; }}"
    )
