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
    blocks: list[tuple[str, str] | list[Forecast]] = [("title", title), ("simulated", simulated)]
    blocks += [("note", conditions), ("note", _KEY)]
    for hosts, spans in found.items():
        blocks += [("head", f"On {', '.join(hosts)}"), [row for row in rows if hosts[0] in row.hosts]]
        blocks += [("note", _words(span)) for span in spans]
    if len(found) > 1:
        blocks.append(("head", f"Even on every host: {ranges(even_everywhere(found.values())) or 'none'}"))
    y, parts = _MARGIN, list[str]()
    for block in blocks:
        if isinstance(block, list):
            y += 6
            for place, row in enumerate(block):
                x = _MARGIN + place % _PER_ROW * _STEP
                parts += _box(row, x, y + place // _PER_ROW * _STEP)
            y += -(-len(block) // _PER_ROW) * _STEP + 6
            continue
        kind, text = block
        y += 12 if kind == "head" else 0
        for line in [text] if kind == "title" else textwrap.wrap(text, _LETTERS):
            y += _LINE
            parts.append(f'<text class="{kind}" x="{_MARGIN}" y="{y - 5}">{escape(line)}</text>')
    y += _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_WIDTH}" height="{y}" '
        f'viewBox="0 0 {_WIDTH} {y}"><title>{escape(title)}</title>'
        f"<desc>{escape(conditions)}</desc><style>{_style(palette('light'))}</style>"
        f'<rect class="paper" width="{_WIDTH}" height="{y}"/>{"".join(parts)}</svg>\n'
    )


def _words(span: Span) -> str:
    if not span.fits:
        return f"{ranges(span.vcpus)} vCPUs: more than the host has cores"
    even = "all" if span.even == span.vcpus else ranges(span.even) or "none"
    nodes = f"{span.nodes} vNUMA node{'' if span.nodes == '1' else 's'}"
    sure = f"confidence {span.confidence}; memory {span.memory}"
    return f"{ranges(span.vcpus)} vCPUs: {nodes}; even: {even}; {sure}"


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
