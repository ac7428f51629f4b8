"""Charts as inline SVG in the page's colours, each with a title and a description."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import vl_convert
from markupsafe import Markup, escape

from vnuma.isolation import IsolatedModule, IsolationError
from vnuma.words.plain_text import escaped

_DRAWER = IsolatedModule(__name__, seconds=60)


def svg_as_png(svg: str) -> bytes:
    """PNG at twice its size in pixels. Raises IsolationError, as `svg_as_pdf`."""
    return b64decode(_DRAWER.call("_svg_as_png", svg))


def svg_as_pdf(svg: str) -> bytes:
    """PDF with vector graphics."""
    return b64decode(_DRAWER.call("_svg_as_pdf", svg))


def _chart_as_svg(specification: Any) -> str:
    return vl_convert.vegalite_to_svg(specification, vl_version=VEGA_LITE)


def _svg_as_png(svg: str) -> str:
    return b64encode(vl_convert.svg_to_png(svg, scale=2.0)).decode()


def _svg_as_pdf(svg: str) -> str:
    return b64encode(vl_convert.svg_to_pdf(svg)).decode()


# Placeholder colours for the page's own, so that a chart follows light and dark mode.
INK, MUTED, GRID, BAND = "#010101", "#020202", "#030303", "#040404"
OURS, LESS = "#050505", "#060606"
_VARIABLES = {INK: "ink", MUTED: "muted", GRID: "grid", BAND: "band", OURS: "ours", LESS: "less"}
FONT = "system-ui, sans-serif"
_WHY = 60
"""Most letters of a reason, which is shown in a chart's place."""

VEGA_LITE = "6.4"
"""The Vega-Lite release for drawing, one that vl-convert includes."""

Spec = dict[str, Any]
"""A part of a Vega-Lite specification, https://vega.github.io/vega-lite/docs/spec.html."""

Rows = list[dict[str, object]]

SHAPES = {
    "circle": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z",
    "square": "M-4.5-4.5h9v9h-9Z",
    "diamond": "M0-6L6 0L0 6L-6 0Z",
    "triangle-up": "M0-5.5L5.5 4.5H-5.5Z",
    "triangle-down": "M0 5.5L5.5-4.5H-5.5Z",
    "cross": "M-2-5.5h4v3.5h3.5v4h-3.5v3.5h-4v-3.5h-3.5v-4h3.5Z",
    "triangle-right": "M5.5 0L-4.5 5.5V-5.5Z",
    "triangle-left": "M-5.5 0L4.5 5.5V-5.5Z",
}
"""The marks of arms in their order: Vega-Lite's name, and the path."""

LETTER = 7
"""Width of a letter in pixels, with room to spare, since the reader's font differs."""


def label_room(largest: float) -> int:
    """Pixels for an axis' labels up to that value, so that its title does not overlap."""
    decimals = 3 if largest < 1000 else 0
    return LETTER * (len(f"{largest:,.0f}") + decimals) + 10


def layer(rows: Rows, mark: Spec, **encoding: Spec) -> Spec:
    """Rows drawn with one kind of mark; `encoding` maps each channel."""
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}


def quantity(field: str, **more: Any) -> Spec:
    """A channel for a numeric field."""
    return {"field": field, "type": "quantitative", **more}


def name_of(field: str, **more: Any) -> Spec:
    """A channel that distinguishes names."""
    return {"field": field, "type": "nominal", **more}


def until(field: str) -> Spec:
    """The other end of a mark, x2 or y2, on the scale of the first."""
    return {"field": field}


def shape_of(field: str, names: Sequence[str], legend: Spec | None = None) -> Spec:
    """One shape per name, the same in every chart."""
    shapes = [[*SHAPES][index % len(SHAPES)] for index in range(len(names))]
    return name_of(field, scale={"domain": list(names), "range": shapes}, legend=legend)


@dataclass(frozen=True)
class Figure:
    """A drawn chart: `svg` for the page, `title`, and `words` as its description."""

    svg: Markup
    title: str
    words: str


def draw(chart: Spec, *, key: str, title: str, words: str) -> Figure:
    """Draw a chart, or say why not. `key` makes the ids of its title and description unique in the page."""
    specification = _printable({**chart, "config": _config(), "background": None})
    try:
        drawn = str(_DRAWER.call("_chart_as_svg", specification))
    except IsolationError as error:
        drawn = _not_drawn(str(error))
    return Figure(inline(drawn, key, title, words), title, words)


def _not_drawn(why: str) -> str:
    """The replacement for a chart; its description and table are still there."""
    text = escape(escaped(f"This chart could not be drawn: {' '.join(why.split())[:_WHY]}"))
    return (
        f'<svg width="560" height="30" viewBox="0 0 560 30"><text x="0" y="20" font-family="{FONT}" '
        f'font-size="12" fill="{INK}">{text}</text></svg>'
    )


def _printable(node: Any) -> Any:
    """The specification without control characters, for which vl-convert aborts the process."""
    if isinstance(node, str):
        return escaped(node)
    if isinstance(node, Mapping):
        return {_printable(key): _printable(value) for key, value in node.items()}
    return [_printable(item) for item in node] if isinstance(node, list) else node


def inline(drawn: str, key: str, title: str, words: str) -> Markup:
    """An SVG document as a picture in HTML, named for screen readers."""
    # Also remove the roles of single marks: the picture is one thing with a title and a description.
    body = re.sub(r'\s(?:xmlns(?::xlink)?|version|role|aria-[a-z]+)="[^"]*"', "", drawn)
    for colour, name in _VARIABLES.items():
        body = body.replace(f'"{colour}"', f'"var(--{name})"')
    head = f'<svg role="img" aria-labelledby="{key}-title {key}-desc"'
    names = f'<title id="{key}-title">{escape(title)}</title><desc id="{key}-desc">{escape(words)}</desc>'
    body = body.replace("<svg", head, 1)
    return Markup(re.sub(r"(<svg[^>]*>)", lambda match: match[1] + names, body, count=1))


def _config() -> dict[str, object]:
    axis = {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "gridColor": GRID,
        "domainColor": GRID,
        "tickColor": GRID,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelFont": FONT,
        "titleFont": FONT,
        "labelLimit": 190,
    }
    return {
        "aria": False,
        "axis": axis,
        "axisY": {"labelColor": INK},
        "view": {"stroke": None},
        "text": {"font": FONT, "fontSize": 12, "color": INK},
        "legend": {
            "labelColor": INK,
            "titleColor": MUTED,
            "labelFont": FONT,
            "labelFontSize": 12,
            "title": None,
        },
    }
