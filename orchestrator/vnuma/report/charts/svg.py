"""Charts as inline SVG: their colours become the page's, and each has a title and its values in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from vnuma.domain.vm.plain_text import escaped
from vnuma.isolation import IsolationError
from vnuma.report.charts.convert import chart_as_svg

# A chart is drawn in these colours, which stand for the page's own; so it follows light and dark.
INK, MUTED, GRID, BAND = "#010101", "#020202", "#030303", "#040404"
OURS, LESS = "#050505", "#060606"
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    BAND: "band",
    OURS: "ours",
    LESS: "less",
}
FONT = "system-ui, sans-serif"
_WHY = 60
"""Letters of a reason: what fits beside a chart's place."""

VEGA_LITE = "6.4"
"""The release of Vega-Lite that draws: one that vl-convert brings along."""

Spec = dict[str, Any]
"""A part of a chart in Vega-Lite's own words, https://vega.github.io/vega-lite/docs/spec.html."""

Rows = list[dict[str, object]]

SHAPES = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "cross",
    "triangle-right",
    "triangle-left",
)


LETTER = 7
"""Width of a letter in pixels, with room: a chart is laid out in another font than the reader's."""


def label_room(largest: float) -> int:
    """Pixels that an axis' labels need up to that value, so that its title stays beside them."""
    decimals = 3 if largest < 1000 else 0
    return LETTER * (len(f"{largest:,.0f}") + decimals) + 10


def layer(rows: Rows, mark: Spec, **encoding: Spec) -> Spec:
    """Rows drawn with one kind of mark; each channel of `encoding` says what it shows."""
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}


def quantity(field: str, **more: Any) -> Spec:
    """A channel that shows a number of the rows."""
    return {"field": field, "type": "quantitative", **more}


def name_of(field: str, **more: Any) -> Spec:
    """A channel that tells names apart."""
    return {"field": field, "type": "nominal", **more}


def until(field: str) -> Spec:
    """The other end of a mark, x2 or y2: on the scale of the first."""
    return {"field": field}


def shape_of(field: str, names: Sequence[str], legend: Spec | None = None) -> Spec:
    """One shape a name, the same in every chart."""
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(names))]
    return name_of(field, scale={"domain": list(names), "range": shapes}, legend=legend)


@dataclass(frozen=True)
class Figure:
    """A drawn chart: `svg` goes into the page; `title` names it, `words` say what it shows."""

    svg: Markup
    title: str
    words: str


def draw(chart: Spec, *, key: str, title: str, words: str) -> Figure:
    """Draw a chart, or say why not. `key` makes the ids of its title and words unique in the page."""
    specification = _printable({**chart, "config": _config(), "background": None})
    try:
        drawn = chart_as_svg(specification, VEGA_LITE)
    except IsolationError as error:
        drawn = _not_drawn(str(error))
    return Figure(inline(drawn, key, title, words), title, words)


def _not_drawn(why: str) -> str:
    """What stands in the place of a chart: its words, and the table beside it, are still there."""
    text = escape(escaped(f"This chart could not be drawn: {' '.join(why.split())[:_WHY]}"))
    return (
        f'<svg width="560" height="30" viewBox="0 0 560 30"><text x="0" y="20" font-family="{FONT}" '
        f'font-size="12" fill="{INK}">{text}</text></svg>'
    )


def _printable(node: Any) -> Any:
    """The specification without control characters: vl-convert aborts the process for one."""
    if isinstance(node, str):
        return escaped(node)
    if isinstance(node, Mapping):
        return {_printable(key): _printable(value) for key, value in node.items()}
    return [_printable(item) for item in node] if isinstance(node, list) else node


def inline(drawn: str, key: str, title: str, words: str) -> Markup:
    """An SVG document as a picture inside HTML, named for screen readers."""
    # Roles of single marks too: the picture is one thing, told in its title and its words.
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
